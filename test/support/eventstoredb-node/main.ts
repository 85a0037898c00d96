/**
 * Runs a node as a process of its own, for tests that kill it or measure beside it: prints its connection string once it
 * listens. A line `drop` on standard input cuts every client off. With `--users` calls need a user, at first
 * `admin:changeit`.
 */
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { startEventStoreDbNode } from './index.ts';
import { DEFAULT_VERSION } from './versions.ts';

const USAGE =
  'usage: node test/support/eventstoredb-node/main.ts --folder <folder> [--port <port>] [--version <version>]' +
  ' [--tls] [--users]';

const { values } = parseArgs({
  options: {
    folder: { type: 'string' },
    port: { type: 'string', default: '0' },
    version: { type: 'string', default: DEFAULT_VERSION },
    tls: { type: 'boolean', default: false },
    users: { type: 'boolean', default: false },
  },
});
const { folder, port, version, tls, users } = values;
if (folder === undefined) throw new Error(USAGE);
const secured = users ? { credentials: 'admin:changeit' } : {};
const node = await startEventStoreDbNode({ folder, port: Number(port), version, tls, ...secured });
process.stdout.write(`${node.connectionString}\n`);
const commands = createInterface({ input: process.stdin });
commands.on('line', (command) => command === 'drop' && node.dropConnections());
process.once('SIGTERM', () => {
  commands.close();
  void node.close();
});
