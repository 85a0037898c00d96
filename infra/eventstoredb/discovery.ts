import { openHostClient, type HostClient } from './clientInternals.ts';
import { hostName, KEEP_ALIVE_MS, type Host, type Target } from './connectionString.ts';
import { endOfLog, within } from './endOfLog.ts';
import { createHosts } from './hosts.ts';
import { chooseMember, membersOf, troubleOf, type Member } from './members.ts';
import { isAccessDenied, isRefused, isUnauthenticated, leaderNamedBy } from './serverErrors.ts';
import { troubleWith } from './trouble.ts';

/** How long a node may take to connect and to answer. */
const VISIT_LIMIT_MS = 2_000;
const GOSSIP_LIMIT_MS = 1_000;

/** A node that can be used, connected. */
export interface Found {
  host: Host;
  client: HostClient;
  /** What is wrong with it all the same: the node answers, but refuses the user. */
  trouble: string | undefined;
}

export interface Discovery {
  /** One look at every host whose time has come. Undefined when none of them can be used. */
  look(): Promise<Found | undefined>;
  /** Something new is known of a host: it is the leader, or answers again. It may be tried at once. */
  hint(host: Host): void;
  /** In how many milliseconds the next look makes sense. */
  pauseMs(): number;
  /** Why the last looks have found nothing, in a sentence. */
  trouble(): string;
}

/** Resolves with the first result that there is, undefined when there is none. */
const first = <Result>(attempts: readonly Promise<Result | undefined>[]): Promise<Result | undefined> =>
  Promise.any(attempts.map(async (attempt) => (await attempt) ?? Promise.reject(new Error('nothing')))).catch(() => undefined);

/** Lets go of what the slower ones of several visits find. */
function closeOthers(visits: Iterable<Promise<Found | undefined>>, found: Found | undefined): void {
  for (const visiting of visits) void visiting.then((other) => other !== found && other?.client.close());
}

interface Options {
  target: Target;
  requiresLeader: boolean;
  /** Ends every look. */
  closed: AbortSignal;
}

/** Finds the node to use, by the nodes' own gossip where there are several, and connects to it. */
export function createDiscovery({ target, requiresLeader, closed }: Options): Discovery {
  /** Whom to ask for the others, and whom to use: a node that is asked and answers may still not be of use. */
  const asked = createHosts(target.seeds);
  const visited = createHosts(target.cluster ? [] : target.seeds);
  /** What a node says of its cluster, while that node answers. */
  let cluster: { by: string; trouble: string } | undefined;
  let opened = 0;
  let lastNamed: string | undefined;

  /** Channels that are configured alike share a socket, which may be the silent one: a new connection is configured otherwise. */
  function open(host: Host): HostClient {
    opened = (opened + 1) % 1_000;
    return openHostClient(target.of(host, KEEP_ALIVE_MS + opened));
  }

  const members = async (client: HostClient): Promise<Member[]> =>
    membersOf(await within(GOSSIP_LIMIT_MS, closed, (signal) => client.gossip(signal)));

  async function visit(host: Host): Promise<Found | undefined> {
    visited.learn(host);
    if (!visited.isDue(host)) return undefined;
    const client = open(host);
    try {
      await within(VISIT_LIMIT_MS, closed, (signal) => endOfLog(client, { requiresLeader, signal }));
      visited.answered(host);
      cluster = undefined;
      return { host, client, trouble: undefined };
    } catch (error) {
      const trouble = troubleWith(host, target, error);
      if (isUnauthenticated(error) || isAccessDenied(error)) {
        visited.answered(host, trouble);
        return { host, client, trouble };
      }
      const leader = leaderNamedBy(error);
      if (leader) hint(leader);
      // Where one host is all that is known, its gossip may still tell why it does not serve.
      if (!target.cluster) note(host, await members(client).catch(() => []));
      visited.failed(host, trouble, isRefused(error));
      client.close();
      return undefined;
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

  /** Asks a host which node to use. */
  async function ask(host: Host): Promise<Host | undefined> {
    const client = open(host);
    try {
      const known = await members(client);
      asked.answered(host);
      for (const { host: other } of known) asked.learn(other);
      const chosen = note(host, known);
      // A leader that was not there at the last look may be one that was tried in vain before.
      if (chosen && hostName(chosen) !== lastNamed) visited.forgive(chosen);
      lastNamed = chosen && hostName(chosen);
      return chosen;
    } catch (error) {
      forget(host);
      asked.failed(host, troubleWith(host, target, error), isRefused(error));
      return undefined;
    } finally {
      client.close();
    }
  }

  async function lookInCluster(): Promise<Found | undefined> {
    const visits = new Map<string, Promise<Found | undefined>>();
    const visitOnce = (host: Host): Promise<Found | undefined> => {
      const visiting = visits.get(hostName(host)) ?? visit(host);
      visits.set(hostName(host), visiting);
      return visiting;
    };
    const found = await first(asked.due().map((host) => ask(host).then((chosen) => chosen && visitOnce(chosen))));
    closeOthers(visits.values(), found);
    return found;
  }

  async function lookAtHosts(): Promise<Found | undefined> {
    const visits = visited.due().map(visit);
    const found = await first(visits);
    closeOthers(visits, found);
    return found;
  }

  function hint(host: Host): void {
    for (const hosts of [asked, visited]) {
      hosts.learn(host);
      hosts.forgive(host);
    }
  }

  return {
    look: target.cluster ? lookInCluster : lookAtHosts,
    hint,
    pauseMs: () => (target.cluster ? asked : visited).pauseMs(),
    trouble: () => cluster?.trouble ?? ([...visited.troubles(), ...asked.troubles()].slice(0, 3).join(' ') || 'The event store does not answer.'),
  };
}
