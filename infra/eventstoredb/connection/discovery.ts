import { sleepUntilAborted } from '../../../shared/lib/time/sleep.ts';
import { formatHost, type ConnectionTarget, type Host } from './connectionString.ts';
import { createDiscoveryState, type DiscoveryState } from './discoveryState.ts';
import type { CheckReadiness } from './heartbeat.ts';
import type { HostClient } from './hostClient.ts';
import {
  isAccessDenied,
  isConnectionRefused,
  isUnauthenticated,
  leaderFromError,
} from './serverErrors.ts';
import { describeHostError, describeSilentHost, NO_ANSWER } from './troubleLog.ts';

/** Tasks for hosts, of which at most one runs per host. */
interface SingleFlight {
  /** Runs the task. Does nothing while another one runs for the host. */
  run(host: Host, task: () => Promise<void>): Promise<void>;
  isBusy(): boolean;
}

function createSingleFlight(): SingleFlight {
  const running = new Set<string>();
  return {
    async run(host, task) {
      const name = formatHost(host);
      if (running.has(name)) return;
      running.add(name);
      try {
        await task();
      } finally {
        running.delete(name);
      }
    },
    isBusy: () => running.size > 0,
  };
}

interface GossipQueries {
  /** Asks a host which node to use. */
  queryGossip(host: Host): Promise<void>;
  isBusy(): boolean;
}

/** Queries hosts for their gossip, each host once at a time. */
function createGossipQueries(
  state: DiscoveryState,
  { requiresLeader, onNode }: { requiresLeader: boolean; onNode: (node: Host) => void },
): GossipQueries {
  const { target, gossipHosts, probeHosts, clusterStatus } = state;
  const queries = createSingleFlight();
  let lastNode: string | undefined;

  async function readPreferredNode(host: Host): Promise<Host | undefined> {
    let client: HostClient | undefined;
    try {
      client = state.openClient(host);
      const members = await state.readMembers(client);
      gossipHosts.recordAnswer(host);
      probeHosts.setTrouble(host, undefined);
      for (const member of members) gossipHosts.add(member.host);
      const node = clusterStatus.update(host, members);
      // A new leader may be a node that failed a probe before its election.
      if (requiresLeader && node && formatHost(node) !== lastNode) probeHosts.resetBackoff(node);
      lastNode = node && formatHost(node);
      return node;
    } catch (error) {
      clusterStatus.forget(host);
      const trouble = describeHostError(host, target, error);
      gossipHosts.recordFailure(host, trouble, isConnectionRefused(error));
      return undefined;
    } finally {
      client?.close();
    }
  }

  return {
    queryGossip: (host) =>
      queries.run(host, async () => {
        const node = await readPreferredNode(host);
        if (node) onNode(node);
      }),
    isBusy: queries.isBusy,
  };
}

/** The time that a node has to connect and answer, in milliseconds. */
const PROBE_LIMIT_MS = 10_000;
/** A slower host is reported as silent, in milliseconds. */
const SILENCE_MS = 1_000;

/** A connected node that can be used. */
export interface UsableNode {
  host: Host;
  client: HostClient;
  /** Set when the node answers but refuses the user. */
  trouble: string | undefined;
}

interface Probes {
  /** Connects to a host and checks whether it can be used. */
  probe(host: Host): Promise<void>;
  isBusy(): boolean;
}

/** Probes hosts, each host once at a time. */
function createProbes(
  state: DiscoveryState,
  {
    checkReadiness,
    onUsable,
  }: { checkReadiness: CheckReadiness; onUsable: (node: UsableNode) => void },
): Probes {
  const { target, gossipHosts, probeHosts, clusterStatus, closed } = state;
  const probes = createSingleFlight();

  async function useIfReady(host: Host, client: HostClient): Promise<void> {
    try {
      await checkReadiness(client, { limitMs: PROBE_LIMIT_MS, signal: closed });
      probeHosts.clearTroubles();
      gossipHosts.clearTroubles();
      probeHosts.recordAnswer(host);
      clusterStatus.clear();
      onUsable({ host, client, trouble: undefined });
    } catch (error) {
      if (!isUnauthenticated(error) && !isAccessDenied(error)) throw error;
      const trouble = describeHostError(host, target, error);
      probeHosts.recordAnswer(host, trouble);
      onUsable({ host, client, trouble });
    }
  }

  async function recordUnusable(
    host: Host,
    client: HostClient | undefined,
    error: unknown,
  ): Promise<void> {
    const trouble = describeHostError(host, target, error);
    const leader = leaderFromError(error);
    if (leader) state.resetBackoff(leader);
    // A single host receives no gossip queries, but its gossip may explain why it can't serve.
    if (!target.isCluster && client)
      clusterStatus.update(host, await state.readMembers(client).catch(() => []));
    probeHosts.recordFailure(host, trouble, isConnectionRefused(error));
    client?.close();
  }

  async function probeHost(host: Host): Promise<void> {
    const silenceTimer = setTimeout(
      () => probeHosts.setTrouble(host, describeSilentHost(host)),
      SILENCE_MS,
    );
    let client: HostClient | undefined;
    try {
      client = state.openClient(host);
      await useIfReady(host, client);
    } catch (error) {
      await recordUnusable(host, client, error);
    } finally {
      clearTimeout(silenceTimer);
    }
  }

  return {
    probe: (host) =>
      probes.run(host, async () => {
        probeHosts.add(host);
        if (probeHosts.isDue(host)) await probeHost(host);
      }),
    isBusy: probes.isBusy,
  };
}

/** How long one round waits for slow hosts, in milliseconds. Later answers count in the next round. */
const ROUND_MS = 300;

export interface Discovery {
  /** Tries every host that is due. Resolves with undefined when none can be used. */
  findNode(): Promise<UsableNode | undefined>;
  /** Ends the search: nodes that answer later are closed. */
  stop(): void;
  /** Makes the host due now: it is the leader, or answers again. */
  resetBackoff(host: Host): void;
  /** Milliseconds until a host is due. */
  nextAttemptInMs(): number;
  /** One sentence on why the last rounds found no node. */
  trouble(): string;
  /** Whether the latest gossip says that the cluster has no quorum. */
  lacksQuorum(): boolean;
}

interface Options {
  target: ConnectionTarget;
  requiresLeader: boolean;
  checkReadiness: CheckReadiness;
  /** Ends discovery. */
  closed: AbortSignal;
}

/** Finds the node to use, by gossip in a cluster, and connects to it. */
export function createDiscovery({
  target,
  requiresLeader,
  checkReadiness,
  closed,
}: Options): Discovery {
  const state = createDiscoveryState(target, closed);
  const { gossipHosts, probeHosts, clusterStatus } = state;
  let isSearching = false;
  let usableNode: UsableNode | undefined;
  let arrival = Promise.withResolvers<void>();

  function onUsable(node: UsableNode): void {
    if (!isSearching || usableNode || closed.aborted) return node.client.close();
    usableNode = node;
    arrival.resolve();
  }

  const { probe, isBusy: isProbing } = createProbes(state, { checkReadiness, onUsable });
  // The probe is not awaited. If the named leader is frozen, the host that named it must be queried
  // again meanwhile.
  const onNode = (node: Host): void => void probe(node);
  const { queryGossip, isBusy: isQuerying } = createGossipQueries(state, {
    requiresLeader,
    onNode,
  });

  return {
    async findNode() {
      isSearching = true;
      const attempts = target.isCluster
        ? gossipHosts.dueHosts().map(queryGossip)
        : probeHosts.dueHosts().map(probe);
      const roundEnd = sleepUntilAborted(ROUND_MS, { signal: closed, ref: false });
      const settled = Promise.all(attempts).then(() =>
        isQuerying() || isProbing() ? roundEnd : undefined,
      );
      if (!usableNode) await Promise.race([arrival.promise, roundEnd, settled]);
      const node = usableNode;
      usableNode = undefined;
      arrival = Promise.withResolvers();
      return node;
    },
    stop() {
      isSearching = false;
      usableNode?.client.close();
      usableNode = undefined;
    },
    resetBackoff: state.resetBackoff,
    nextAttemptInMs: () => (target.isCluster ? gossipHosts : probeHosts).nextAttemptInMs(),
    lacksQuorum: clusterStatus.lacksQuorum,
    trouble: () =>
      clusterStatus.trouble() ??
      ([...new Set([...probeHosts.troubles(), ...gossipHosts.troubles()])].slice(0, 3).join(' ') ||
        NO_ANSWER),
  };
}
