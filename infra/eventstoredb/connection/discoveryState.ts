import gossipPb, { type ClusterInfo } from '@eventstore/db-client/generated/gossip_pb.js';
import { backoffMs } from '../../../shared/lib/time/backoff.ts';
import { withDeadline } from '../../../shared/lib/time/withDeadline.ts';
import {
  formatHost,
  isValidHost,
  KEEP_ALIVE_MS,
  type ConnectionTarget,
  type Host,
} from './connectionString.ts';
import { openHostClient, type HostClient } from './hostClient.ts';

const { VNodeState } = gossipPb.MemberInfo;

/** A cluster member as another node's gossip describes it. */
interface ClusterMember {
  host: Host;
  state: gossipPb.MemberInfo.VNodeState;
  isAlive: boolean;
}

/** The members in a gossip response, without those that have an invalid address. */
export const parseMembers = (info: ClusterInfo): ClusterMember[] =>
  info.getMembersList().flatMap((member) => {
    const endpoint = member.getHttpEndPoint();
    const host = endpoint && { address: endpoint.getAddress(), port: endpoint.getPort() };
    return host && isValidHost(host)
      ? [{ host, state: member.getState(), isAlive: member.getIsAlive() }]
      : [];
  });

const REPLICA_STATES = new Set([
  VNodeState.READONLYREPLICA,
  VNodeState.PREREADONLYREPLICA,
  VNodeState.READONLYLEADERLESS,
]);
const SERVING_STATES = new Set([VNodeState.LEADER, VNodeState.FOLLOWER, ...REPLICA_STATES]);

const MATCHES_PREFERENCE: Record<
  ConnectionTarget['nodePreference'],
  (member: ClusterMember) => boolean
> = {
  leader: ({ state }) => state === VNodeState.LEADER,
  follower: ({ state }) => state === VNodeState.FOLLOWER,
  readonlyreplica: ({ state }) => REPLICA_STATES.has(state),
  random: () => true,
};

/** Chooses a living node of the preferred kind; without one, any that serves unless a leader is required. */
export function chooseNode(
  members: readonly ClusterMember[],
  preference: ConnectionTarget['nodePreference'],
): Host | undefined {
  const serving = members.filter(({ state, isAlive }) => isAlive && SERVING_STATES.has(state));
  const preferred = serving.filter(MATCHES_PREFERENCE[preference]);
  const candidates = preferred.length === 0 && preference !== 'leader' ? serving : preferred;
  return candidates[Math.floor(Math.random() * candidates.length)]?.host;
}

const aliveCount = (members: readonly ClusterMember[]): number =>
  members.filter(({ isAlive }) => isAlive).length;

const hasQuorum = (members: readonly ClusterMember[]): boolean =>
  aliveCount(members) * 2 > members.length;

/** Describes in one sentence why no member of the cluster can be used. */
export function describeUnusableCluster(members: readonly ClusterMember[]): string {
  const alive = aliveCount(members);
  const dead = members.filter(({ isAlive }) => !isAlive).map(({ host }) => formatHost(host));
  if (hasQuorum(members)) return 'The cluster of the event store has no leader at the moment.';
  const deadNodes = dead.length === 1 ? `${dead[0]} is not` : `${dead.join(' and ')} are not`;
  return `The cluster of the event store has no quorum: only ${alive} of its ${members.length} nodes ${alive === 1 ? 'is' : 'are'} alive; ${deadNodes}.`;
}

/** The cluster's state as the latest gossip describes it. */
interface ClusterStatus {
  /** Records a node's gossip. Returns the node to use; undefined without a usable one. */
  update(source: Host, members: readonly ClusterMember[]): Host | undefined;
  /** Drops what the host reported: it no longer answers. */
  forget(source: Host): void;
  /** Drops the trouble: a node can be used. */
  clear(): void;
  /** One sentence on why no node can be used. */
  trouble(): string | undefined;
  /** Whether too few members are alive to elect a leader. */
  lacksQuorum(): boolean;
}

function createClusterStatus(preference: ConnectionTarget['nodePreference']): ClusterStatus {
  let report: { source: string; trouble: string; lacksQuorum: boolean } | undefined;

  function forget(source: Host): void {
    if (report?.source === formatHost(source)) report = undefined;
  }

  return {
    update(source, members) {
      const node = chooseNode(members, preference);
      if (!node && members.length > 1)
        report = {
          source: formatHost(source),
          trouble: describeUnusableCluster(members),
          lacksQuorum: !hasQuorum(members),
        };
      else forget(source);
      return node;
    },
    forget,
    clear: () => void (report = undefined),
    trouble: () => report?.trouble,
    lacksQuorum: () => report?.lacksQuorum ?? false,
  };
}

/** The pause before the next attempt at a host that answers but can't help yet, in milliseconds. */
const POLL_MS = 250;
/** The spread prevents clients of the same host from retrying in step. */
const HOST_BACKOFF = { firstMs: 250, longestMs: 5_000, spread: [1, 1.25] } as const;
/** A refused connection costs little, and a starting node should be noticed soon. */
const REFUSED_BACKOFF = { ...HOST_BACKOFF, longestMs: 1_000 };
/** The maximum number of remembered hosts, including seeds. No cluster has as many. */
const MAX_HOSTS = 32;

interface HostState {
  host: Host;
  failures: number;
  nextAttemptAt: number;
  trouble: string | undefined;
}

/** Hosts with a backoff for each. Times are in milliseconds of `performance.now()`. */
export interface HostPool {
  /** The hosts whose backoff has passed. */
  dueHosts(): Host[];
  isDue(host: Host): boolean;
  /** Milliseconds until the next host is due. */
  nextAttemptInMs(): number;
  add(host: Host): void;
  /** The host answered. `trouble` says why it can't be used all the same. */
  recordAnswer(host: Host, trouble?: string): void;
  recordFailure(host: Host, trouble: string, isRefused: boolean): void;
  /** Sets the trouble of a host while an attempt is in progress. */
  setTrouble(host: Host, trouble: string | undefined): void;
  /** Clears the troubles of all hosts: one host can be used. */
  clearTroubles(): void;
  /** Makes the host due now, because new information about it arrived. */
  resetBackoff(host: Host): void;
  /** The distinct troubles, in the order in which hosts were added. */
  troubles(): string[];
}

export function createHostPool(seeds: readonly Host[]): HostPool {
  const hosts = new Map<string, HostState>();
  const seedNames = new Set(seeds.map(formatHost));

  const add = (host: Host): void => {
    const name = formatHost(host);
    if (hosts.has(name)) return;
    hosts.set(name, { host, failures: 0, nextAttemptAt: 0, trouble: undefined });
    // Evicts the oldest host: when addresses change, it is the most likely to be stale.
    if (hosts.size > MAX_HOSTS)
      hosts.delete([...hosts.keys()].find((candidate) => !seedNames.has(candidate)) ?? name);
  };
  const update = (host: Host, change: (state: HostState) => Partial<HostState>): void => {
    const state = hosts.get(formatHost(host));
    if (state) Object.assign(state, change(state));
  };
  for (const seed of seeds) add(seed);

  return {
    dueHosts: () =>
      [...hosts.values()]
        .filter(({ nextAttemptAt }) => nextAttemptAt <= performance.now())
        .map(({ host }) => host),
    isDue: (host) => (hosts.get(formatHost(host))?.nextAttemptAt ?? 0) <= performance.now(),
    nextAttemptInMs: () =>
      Math.max(
        0,
        Math.min(...[...hosts.values()].map(({ nextAttemptAt }) => nextAttemptAt)) -
          performance.now(),
      ),
    add,
    recordAnswer: (host, trouble) =>
      update(host, () => ({ failures: 0, nextAttemptAt: performance.now() + POLL_MS, trouble })),
    recordFailure: (host, trouble, isRefused) =>
      update(host, ({ failures }) => ({
        failures: failures + 1,
        nextAttemptAt:
          performance.now() + backoffMs(isRefused ? REFUSED_BACKOFF : HOST_BACKOFF, failures),
        trouble,
      })),
    setTrouble: (host, trouble) => update(host, () => ({ trouble })),
    clearTroubles: () => hosts.forEach((state) => Object.assign(state, { trouble: undefined })),
    resetBackoff: (host) => update(host, () => ({ failures: 0, nextAttemptAt: 0 })),
    troubles: () => [...new Set([...hosts.values()].flatMap(({ trouble }) => trouble ?? []))],
  };
}

/** The time limit for a node's gossip, in milliseconds. */
const GOSSIP_LIMIT_MS = 1_000;

/** Discovery's view of the hosts and the cluster. */
export interface DiscoveryState {
  target: ConnectionTarget;
  /** The hosts to ask for gossip. */
  gossipHosts: HostPool;
  /** The hosts to probe. A node that gossips may still be unusable. */
  probeHosts: HostPool;
  clusterStatus: ClusterStatus;
  /** Ends discovery. */
  closed: AbortSignal;
  /** Opens a new connection. */
  openClient(host: Host): HostClient;
  /** Reads the node's view of its cluster. */
  readMembers(client: HostClient): Promise<ClusterMember[]>;
  /** Makes the host due now, because new information about it arrived. */
  resetBackoff(host: Host): void;
}

export function createDiscoveryState(
  target: ConnectionTarget,
  closed: AbortSignal,
): DiscoveryState {
  const gossipHosts = createHostPool(target.seeds);
  const probeHosts = createHostPool(target.isCluster ? [] : target.seeds);
  let openedClients = 0;

  return {
    target,
    gossipHosts,
    probeHosts,
    clusterStatus: createClusterStatus(target.nodePreference),
    closed,
    openClient(host) {
      // gRPC channels with equal options share a socket, which may be the silent one. A different
      // keep-alive interval gives each client its own socket.
      openedClients = (openedClients + 1) % 1_000;
      return openHostClient(target.connectionTo(host, KEEP_ALIVE_MS + openedClients));
    },
    readMembers: async (client) =>
      parseMembers(
        await withDeadline(GOSSIP_LIMIT_MS, closed, (signal) => client.readGossip(signal)),
      ),
    resetBackoff(host) {
      for (const pool of [gossipHosts, probeHosts]) {
        pool.add(host);
        pool.resetBackoff(host);
      }
    },
  };
}
