import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { gossipOf } from './eventStoreDbGossip.ts';
import { spawnEventStoreDbNode, type EventStoreDbProcess } from './eventStoreDbProcess.ts';
import { freePort } from '../../processes/freePort.ts';

const SIZE = 3;
const POLL_MS = 50;

export type EventStoreDbClusterProcess = Awaited<
  ReturnType<typeof startEventStoreDbClusterProcess>
>;

/**
 * Starts a cluster of three processes, each on a folder of its own below the one that is given, and
 * resolves when it has a leader that the others follow. Nodes are named by their index. A client
 * must be ready for each of them to be gone, to be silent and to be wrong about who leads.
 */
export async function startEventStoreDbClusterProcess({
  folder,
  version,
}: {
  folder: string;
  version?: string;
}) {
  const ports: number[] = [];
  while (ports.length < 2 * SIZE) {
    const port = await freePort();
    if (!ports.includes(port)) ports.push(port);
  }
  const replicationPorts = ports.splice(SIZE);
  const hosts = ports.map((port) => `127.0.0.1:${port}`);
  const options = ['--ports', ports.join(','), '--replication-ports', replicationPorts.join(',')];
  if (version !== undefined) options.push('--version', version);

  const spawnMember = (index: number): Promise<EventStoreDbProcess> =>
    spawnEventStoreDbNode([
      '--folder',
      join(folder, `node-${index}`),
      '--member',
      String(index),
      ...options,
    ]);
  const nodes = await Promise.all(ports.map((_, index) => spawnMember(index)));
  const at = (index: number): EventStoreDbProcess => {
    const node = nodes[index];
    if (!node) throw new Error(`there is no node ${index}`);
    return node;
  };

  /**
   * The leader that says so itself and is called so by another one; undefined while there is none.
   */
  async function leader(): Promise<number | undefined> {
    const told = await Promise.all(ports.map((port) => gossipOf(port)));
    const isNamed = (index: number, by: number) =>
      told[by]?.some(
        ({ port, state, alive }) => port === ports[index] && state === 'leader' && alive,
      ) ?? false;
    const isByOthers = (index: number) => ports.some((_, by) => by !== index && isNamed(index, by));
    const found = ports.findIndex((_, index) => isNamed(index, index) && isByOthers(index));
    return found === -1 ? undefined : found;
  }

  /** The leader, as soon as there is one. */
  async function untilLeader(timeoutMs = 20_000): Promise<number> {
    for (const deadline = Date.now() + timeoutMs; Date.now() < deadline; await sleep(POLL_MS)) {
      const index = await leader();
      if (index !== undefined) return index;
    }
    throw new Error(`the cluster has no leader after ${timeoutMs} ms`);
  }

  const cluster = {
    /** `esdb://…` with the addresses of all nodes. */
    connectionString: `esdb://${hosts.join(',')}?tls=false`,
    /** `esdb+discover://…` with the address of one node, which leads to the others. */
    discoverString: (index = 0): string => `esdb+discover://${hosts[index]}?tls=false`,
    /** Where the nodes listen for clients. */
    ports,
    /** The processes as they are now. */
    pids: (): number[] => nodes.map(({ pid }) => pid),
    leader,
    untilLeader,
    /** Ends a node, with SIGKILL unless told otherwise. */
    kill: (index: number, signal?: NodeJS.Signals): Promise<void> => at(index).kill(signal),
    /** Starts a node again that was killed, on the same ports and the same log. */
    async start(index: number): Promise<void> {
      nodes[index] = await spawnMember(index);
    },
    /** Stops a node as it is: its connections stay, and nobody answers. */
    freeze: (index: number): void => at(index).signal('SIGSTOP'),
    thaw: (index: number): void => at(index).signal('SIGCONT'),
    /** Cuts the clients of a node off. */
    drop: (index: number): void => at(index).command('drop'),
    /** Cuts a node off from the other nodes, but not from its clients. */
    isolate: (index: number): void => at(index).command('isolate'),
    rejoin: (index: number): void => at(index).command('rejoin'),
    /** Makes the present leader step down, and resolves with its index. */
    async resign(): Promise<number> {
      const index = await untilLeader();
      at(index).command('resign');
      return index;
    },
    async close(): Promise<void> {
      await Promise.all(nodes.map((node) => node.kill()));
    },
  };
  await untilLeader();
  return cluster;
}
