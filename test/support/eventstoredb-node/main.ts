/**
 * Runs a node as a process of its own, for tests that kill it or measure beside it: prints its connection string once it
 * listens. With `--member` it is one of a cluster, and `--ports` and `--replication-ports` name those of all members.
 * Lines on standard input: `drop` cuts every client off, `resign` makes a leader step down, `isolate` cuts a member off from
 * the others and `rejoin` ends that.
 */
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { startClusterMember } from './cluster/index.ts';
import { startEventStoreDbNode } from './index.ts';

const USAGE = `usage: node test/support/eventstoredb-node/main.ts --folder <folder>
  [--port <port> | --member <index> --ports <port,port,port> --replication-ports <port,port,port>]`;

const { values } = parseArgs({
  options: {
    folder: { type: 'string' },
    port: { type: 'string', default: '0' },
    member: { type: 'string' },
    ports: { type: 'string', default: '' },
    'replication-ports': { type: 'string', default: '' },
  },
});
const { folder, member } = values;
if (folder === undefined) throw new Error(USAGE);

const numbers = (list: string): number[] => list.split(',').map(Number);

async function startMember(index: number) {
  const options = { folder: folder ?? '', index, ports: numbers(values.ports), replicationPorts: numbers(values['replication-ports']) };
  const { resign, isolate, ...node } = await startClusterMember(options);
  return { ...node, commands: { drop: node.dropConnections, resign, isolate: () => isolate(true), rejoin: () => isolate(false) } };
}

async function startSingle() {
  const node = await startEventStoreDbNode({ folder: folder ?? '', port: Number(values.port) });
  return { ...node, commands: { drop: node.dropConnections } };
}

const node = member === undefined ? await startSingle() : await startMember(Number(member));
process.stdout.write(`${node.connectionString}\n`);
const commands: Record<string, (() => void) | undefined> = node.commands;
const lines = createInterface({ input: process.stdin });
lines.on('line', (command) => commands[command]?.());
process.once('SIGTERM', () => {
  lines.close();
  void node.close();
});
