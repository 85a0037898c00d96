/**
 * Runs a node as a process of its own, for tests that kill it or measure beside it: prints its connection string once it
 * listens. A line `drop` on standard input cuts every client off.
 */
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { startEventStoreDbNode } from './index.ts';

const { values } = parseArgs({ options: { folder: { type: 'string' }, port: { type: 'string', default: '0' } } });
if (values.folder === undefined) throw new Error('usage: node test/support/eventstoredb-node/main.ts --folder <folder> [--port <port>]');
const node = await startEventStoreDbNode({ folder: values.folder, port: Number(values.port) });
process.stdout.write(`${node.connectionString}\n`);
const commands = createInterface({ input: process.stdin });
commands.on('line', (command) => command === 'drop' && node.dropConnections());
process.once('SIGTERM', () => {
  commands.close();
  void node.close();
});
