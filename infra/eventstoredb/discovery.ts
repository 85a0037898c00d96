import { setTimeout as sleep } from 'node:timers/promises';
import { openHostClient, type HostClient } from './clientInternals.ts';
import { hostName, KEEP_ALIVE_MS, type Host, type Target } from './connectionString.ts';
import { within } from './endOfLog.ts';
import { createHosts } from './hosts.ts';
import { chooseMember, membersOf, troubleOf, type Member } from './members.ts';
import { isAccessDenied, isRefused, isUnauthenticated, leaderNamedBy } from './serverErrors.ts';
import type { AskIfServing } from './serving.ts';
import { Silence, troubleWith } from './trouble.ts';

/** How long a node may take to connect and to answer, and to tell what it knows of the others. */
const VISIT_LIMIT_MS = 10_000;
const GOSSIP_LIMIT_MS = 1_000;
/** After so long it is said that a host does not answer, though it may be slow. */
const SILENCE_MS = 1_000;
/** A look does not wait longer for the slow ones: what they say counts at the next look. */
const LOOK_MS = 300;

/** A node that can be used, connected. */
export interface Found {
  host: Host;
  client: HostClient;
  /** What is wrong with it all the same: the node answers, but refuses the user. */
  trouble: string | undefined;
}

export interface Discovery {
  /** One look at every host whose time has come. Undefined while none of them is found to be of use. */
  look(): Promise<Found | undefined>;
  /** Nothing is looked for any more: what slower hosts still say is not wanted. */
  rest(): void;
  /** Something new is known of a host: it is the leader, or answers again. It may be tried at once. */
  hint(host: Host): void;
  /** In how many milliseconds the next look makes sense. */
  pauseMs(): number;
  /** Why the last looks have found nothing, in a sentence. */
  trouble(): string;
}

interface Options {
  target: Target;
  requiresLeader: boolean;
  askIfServing: AskIfServing;
  /** Ends every look. */
  closed: AbortSignal;
}

/** Runs at most once at a time for a host. */
async function once(busy: Set<string>, host: Host, work: () => Promise<void>): Promise<void> {
  const name = hostName(host);
  if (busy.has(name)) return;
  busy.add(name);
  try {
    await work();
  } finally {
    busy.delete(name);
  }
}

/** Finds the node to use, by the nodes' own gossip where there are several, and connects to it. */
export function createDiscovery({
  target,
  requiresLeader,
  askIfServing,
  closed,
}: Options): Discovery {
  /** Whom to ask for the others, and whom to use: a node that is asked and answers may still not be of use. */
  const asked = createHosts(target.seeds);
  const visited = createHosts(target.cluster ? [] : target.seeds);
  /** What a node says of its cluster, while that node answers. */
  let cluster: { by: string; trouble: string } | undefined;
  let opened = 0;
  let lastNamed: string | undefined;
  /** Hosts that are being asked or visited now, by name. */
  const asking = new Set<string>();
  const visiting = new Set<string>();
  let wanted = false;
  let arrived: Found | undefined;
  let arrival = Promise.withResolvers<void>();

  function arrive(found: Found): void {
    if (!wanted || arrived || closed.aborted) return found.client.close();
    arrived = found;
    arrival.resolve();
  }

  /** Channels that are configured alike share a socket, which may be the silent one: a new connection is configured otherwise. */
  function open(host: Host): HostClient {
    opened = (opened + 1) % 1_000;
    return openHostClient(target.of(host, KEEP_ALIVE_MS + opened));
  }

  const members = async (client: HostClient): Promise<Member[]> =>
    membersOf(await within(GOSSIP_LIMIT_MS, closed, (signal) => client.gossip(signal)));

  const visit = (host: Host): Promise<void> =>
    once(visiting, host, async () => {
      visited.learn(host);
      if (visited.isDue(host)) await tryOut(host);
    });

  async function tryOut(host: Host): Promise<void> {
    const silence = setTimeout(
      () => visited.note(host, troubleWith(host, target, new Silence())),
      SILENCE_MS,
    );
    let client: HostClient | undefined;
    try {
      client = open(host);
      await askIfServing(client, { limitMs: VISIT_LIMIT_MS, signal: closed });
      visited.clear();
      asked.clear();
      visited.answered(host);
      cluster = undefined;
      arrive({ host, client, trouble: undefined });
    } catch (error) {
      const trouble = troubleWith(host, target, error);
      if (client && (isUnauthenticated(error) || isAccessDenied(error))) {
        visited.answered(host, trouble);
        return arrive({ host, client, trouble });
      }
      const leader = leaderNamedBy(error);
      if (leader) hint(leader);
      // Where one host is all that is known, its gossip may still tell why it does not serve.
      if (!target.cluster && client) note(host, await members(client).catch(() => []));
      visited.failed(host, trouble, isRefused(error));
      client?.close();
    } finally {
      clearTimeout(silence);
    }
  }

  /** Notes what a host says of its cluster, where that explains why it can't be used. */
  function note(host: Host, known: readonly Member[]): Host | undefined {
    const chosen = chooseMember(known, target.preference);
    if (!chosen && known.length > 1) cluster = { by: hostName(host), trouble: troubleOf(known) };
    else forget(host);
    return chosen;
  }

  function forget(host: Host): void {
    if (cluster?.by === hostName(host)) cluster = undefined;
  }

  /** Asks a host which node to use, and visits that one. */
  const ask = (host: Host): Promise<void> =>
    once(asking, host, async () => {
      const chosen = await nameOf(host);
      // Not waited for: the leader may be frozen, and this host is to be asked again whether it still is the leader.
      if (chosen) void visit(chosen);
    });

  async function nameOf(host: Host): Promise<Host | undefined> {
    let client: HostClient | undefined;
    try {
      client = open(host);
      const known = await members(client);
      asked.answered(host);
      visited.note(host, undefined);
      for (const { host: other } of known) asked.learn(other);
      const chosen = note(host, known);
      // A leader that was not there at the last look may be one that was tried in vain before.
      if (requiresLeader && chosen && hostName(chosen) !== lastNamed) visited.forgive(chosen);
      lastNamed = chosen && hostName(chosen);
      return chosen;
    } catch (error) {
      forget(host);
      asked.failed(host, troubleWith(host, target, error), isRefused(error));
      return undefined;
    } finally {
      client?.close();
    }
  }

  async function look(): Promise<Found | undefined> {
    wanted = true;
    const tries = target.cluster ? asked.due().map(ask) : visited.due().map(visit);
    const tick = sleep(LOOK_MS, undefined, { signal: closed, ref: false }).catch(() => undefined);
    const settled = Promise.all(tries).then(() =>
      asking.size + visiting.size > 0 ? tick : undefined,
    );
    if (!arrived) await Promise.race([arrival.promise, tick, settled]);
    const found = arrived;
    arrived = undefined;
    arrival = Promise.withResolvers();
    return found;
  }

  function hint(host: Host): void {
    for (const hosts of [asked, visited]) {
      hosts.learn(host);
      hosts.forgive(host);
    }
  }

  return {
    look,
    rest() {
      wanted = false;
      arrived?.client.close();
      arrived = undefined;
    },
    hint,
    pauseMs: () => (target.cluster ? asked : visited).pauseMs(),
    trouble: () =>
      cluster?.trouble ??
      ([...new Set([...visited.troubles(), ...asked.troubles()])].slice(0, 3).join(' ') ||
        'The event store does not answer.'),
  };
}
