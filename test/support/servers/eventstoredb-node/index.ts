import type grpc from '@grpc/grpc-js';
import { guardedAccess, openAccess, type Access } from './access.ts';
import type { Faults } from './faults.ts';
import { CERTIFICATE_FILE } from '../tls/files.ts';
import { handleHttp } from './http.ts';
import { createListener } from './listener.ts';
import { createInFlight } from './inFlight.ts';
import { openLog, type NodeLog } from './log.ts';
import { createNode, type Member, type NodeOptions } from './node.ts';
import { addServices } from './services.ts';
import { serverVersion } from './versions.ts';

export interface EventStoreDbNode {
  /** `esdb://…` of this node alone. */
  connectionString: string;
  host: string;
  port: number;
  faults: Faults;
  /** The log itself, to look at or to write to past the wire. */
  log: NodeLog;
  /** How many responses were compressed, as servers from 25.1 on do for clients that accept it. */
  compressedResponses: () => number;
  dropConnections: () => void;
  /** Goes away; the log stays. */
  stop: () => Promise<void>;
  /** Comes back on the same port and log. */
  start: () => Promise<void>;
  close: () => Promise<void>;
}

export interface EventStoreDbCluster {
  /** `esdb://…` with the addresses of all nodes: clients find the leader by gossip. */
  connectionString: string;
  nodes: EventStoreDbNode[];
  /** Makes the node at this index the leader. */
  elect: (index: number) => void;
  close: () => Promise<void>;
}

interface Options {
  /** Where the log is kept. */
  folder: string;
  /** An ephemeral one when absent. */
  port?: number;
  /**
   * `user:password` of an administrator: calls must carry a user's credentials. Anyone may do
   * anything when absent.
   */
  credentials?: string;
  tls?: boolean;
  /** The version to pass for: one of those in `versions.ts`. */
  version?: string;
  /** How long it takes from writing an append to answering it. */
  commitMs?: number | undefined;
}

/** The first users of a fresh log are its administrators. */
function accessTo(log: NodeLog, credentials: string | undefined): Access {
  if (credentials === undefined) return openAccess;
  const access = guardedAccess(log);
  const [loginName = '', password = ''] = credentials.split(':');
  access.users?.create({ loginName, password, groups: ['$admins'] });
  return access;
}

async function startMember(
  log: NodeLog,
  members: Member[],
  options: Options,
): Promise<EventStoreDbNode> {
  const self: Member = {
    instanceId: crypto.randomUUID(),
    host: '127.0.0.1',
    port: 0,
    state: members.length === 0 ? 'leader' : 'follower',
    alive: true,
  };
  members.push(self);
  const access = accessTo(log, options.credentials);
  const version = serverVersion(options.version);
  const settle = createInFlight(options.commitMs);
  const perform: NodeOptions['perform'] = (operation, done) =>
    settle(log.perform(operation), { answer: done, timeout: () => done({ kind: 'timeout' }) });
  const shared = { log, members: () => members, perform, access, version };
  const node = createNode(
    shared,
    () => self,
    () => listener.dropConnections(),
  );
  let compressed = 0;
  const services = {
    register: (server: grpc.Server) => addServices(server, node),
    onHttp: handleHttp(access),
    ...(version.compresses && { onCompressed: () => void (compressed += 1) }),
  };
  const listener = createListener(services, options.tls ?? false);

  async function start(): Promise<void> {
    self.port = (await listener.listen(options.port ?? 0)).port;
    self.alive = true;
  }
  async function stop(): Promise<void> {
    self.alive = false;
    await listener.stop();
  }

  await start();
  const user = options.credentials === undefined ? '' : `${options.credentials}@`;
  const connectionString = `esdb://${user}${self.host}:${self.port}?${options.tls ? `tls=true&tlsCAFile=${encodeURIComponent(CERTIFICATE_FILE)}` : 'tls=false'}`;
  return {
    connectionString,
    host: self.host,
    port: self.port,
    faults: node.faults,
    log,
    compressedResponses: () => compressed,
    dropConnections: listener.dropConnections,
    stop,
    start,
    close: stop,
  };
}

/**
 * A node of its own that behaves like EventStoreDB on the wire, for what the Node.js client asks of
 * it.
 */
export async function startEventStoreDbNode(options: Options): Promise<EventStoreDbNode> {
  const log = openLog(options.folder);
  const node = await startMember(log, [], options);
  return {
    ...node,
    async close() {
      await node.stop();
      log.close();
    },
  };
}

/**
 * Nodes that share one log, as replication would make it: the first is the leader. Writes that ask
 * for the leader are refused by the others.
 */
export async function startEventStoreDbCluster({
  folder,
  size,
}: {
  folder: string;
  size: number;
}): Promise<EventStoreDbCluster> {
  const log = openLog(folder);
  const members: Member[] = [];
  const nodes: EventStoreDbNode[] = [];
  for (let index = 0; index < size; index += 1)
    nodes.push(await startMember(log, members, { folder }));
  return {
    connectionString: `esdb://${nodes.map(({ host, port }) => `${host}:${port}`).join(',')}?tls=false`,
    nodes,
    elect: (leader) =>
      members.forEach((member, index) => (member.state = index === leader ? 'leader' : 'follower')),
    async close() {
      await Promise.all(nodes.map((node) => node.stop()));
      log.close();
    },
  };
}
