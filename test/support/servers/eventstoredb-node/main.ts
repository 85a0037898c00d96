/**
 * Runs a node as a process of its own, for tests that kill it or measure beside it: prints its
 * connection string once it listens. With `--users` calls need a user: `admin:changeit` at first.
 * With `--member` it is one of a cluster, and `--ports` and `--replication-ports` name those of all
 * members.
 * Lines on standard input: `drop` cuts every client off, `resign` makes a leader step down,
 * `isolate` cuts a member off from the others and `rejoin` ends that.
 */
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { startClusterMember } from './cluster/index.ts';
import { startEventStoreDbNode } from './index.ts';
import { DEFAULT_VERSION } from './versions.ts';

const USAGE = `usage: node test/support/servers/eventstoredb-node/main.ts --folder <folder> [--version <version>]
  [--port <port>] [--tls] [--users] [--commit-ms <ms>] | --member <index> --ports <port,port,port> --replication-ports <port,port,port>`;

const { values } = parseArgs({
  options: {
    folder: { type: 'string' },
    port: { type: 'string', default: '0' },
    version: { type: 'string', default: DEFAULT_VERSION },
    tls: { type: 'boolean', default: false },
    users: { type: 'boolean', default: false },
    'commit-ms': { type: 'string' },
    member: { type: 'string' },
    ports: { type: 'string', default: '' },
    'replication-ports': { type: 'string', default: '' },
  },
});

const numbers = (list: string): number[] => list.split(',').map(Number);

async function startMember(folder: string, index: number) {
  const { version, ports, 'replication-ports': replicationPorts } = values;
  const addresses = { index, ports: numbers(ports), replicationPorts: numbers(replicationPorts) };
  const { resign, isolate, ...node } = await startClusterMember({ folder, version, ...addresses });
  const network = { isolate: () => isolate(true), rejoin: () => isolate(false) };
  return { ...node, commands: { drop: node.dropConnections, resign, ...network } };
}

async function startSingle(folder: string) {
  const { port, version, tls, users, 'commit-ms': commitMs } = values;
  const credentials = users ? { credentials: 'admin:changeit' } : {};
  const node = await startEventStoreDbNode({
    folder,
    port: Number(port),
    version,
    tls,
    commitMs: commitMs === undefined ? undefined : Number(commitMs),
    ...credentials,
  });
  return { ...node, commands: { drop: node.dropConnections } };
}

const { folder, member } = values;
if (folder === undefined) throw new Error(USAGE);
const node =
  member === undefined ? await startSingle(folder) : await startMember(folder, Number(member));
process.stdout.write(`${node.connectionString}\n`);
const commands: Record<string, (() => void) | undefined> = node.commands;
const lines = createInterface({ input: process.stdin });
lines.on('line', (command) => commands[command]?.());
process.once('SIGTERM', () => {
  lines.close();
  void node.close();
});
