import type { HostClient } from './clientInternals.ts';
import type { Host } from './connectionString.ts';
import { createOncePerHost } from './oncePerHost.ts';
import type { Search } from './search.ts';
import { isAccessDenied, isRefused, isUnauthenticated, leaderNamedBy } from './serverErrors.ts';
import type { AskIfServing } from './serving.ts';
import { Silence, troubleWith } from './trouble.ts';

/** How long a node may take to connect and to answer. */
const VISIT_LIMIT_MS = 10_000;
/** After so long it is said that a host does not answer, though it may be slow. */
const SILENCE_MS = 1_000;

/** A node that can be used, connected. */
export interface Found {
  host: Host;
  client: HostClient;
  /** What is wrong with it all the same: the node answers, but refuses the user. */
  trouble: string | undefined;
}

interface Visits {
  /** Connects to a host, and sees whether it can be used. */
  visit(host: Host): Promise<void>;
  isBusy(): boolean;
}

/** Tries hosts out, each once at a time. */
export function createVisits(
  search: Search,
  { askIfServing, onFound }: { askIfServing: AskIfServing; onFound: (found: Found) => void },
): Visits {
  const { target, asked, visited, cluster, closed } = search;
  const visits = createOncePerHost();

  async function judge(host: Host, client: HostClient): Promise<void> {
    try {
      await askIfServing(client, { limitMs: VISIT_LIMIT_MS, signal: closed });
      visited.clear();
      asked.clear();
      visited.answered(host);
      cluster.clear();
      onFound({ host, client, trouble: undefined });
    } catch (error) {
      if (!isUnauthenticated(error) && !isAccessDenied(error)) throw error;
      const trouble = troubleWith(host, target, error);
      visited.answered(host, trouble);
      onFound({ host, client, trouble });
    }
  }

  async function notOfUse(
    host: Host,
    client: HostClient | undefined,
    error: unknown,
  ): Promise<void> {
    const trouble = troubleWith(host, target, error);
    const leader = leaderNamedBy(error);
    if (leader) search.hint(leader);
    // Where one host is all that is known, its gossip may still tell why it does not serve.
    if (!target.cluster && client)
      cluster.note(host, await search.membersKnownTo(client).catch(() => []));
    visited.failed(host, trouble, isRefused(error));
    client?.close();
  }

  async function tryOut(host: Host): Promise<void> {
    const silence = setTimeout(
      () => visited.note(host, troubleWith(host, target, new Silence())),
      SILENCE_MS,
    );
    let client: HostClient | undefined;
    try {
      client = search.open(host);
      await judge(host, client);
    } catch (error) {
      await notOfUse(host, client, error);
    } finally {
      clearTimeout(silence);
    }
  }

  return {
    visit: (host) =>
      visits.run(host, async () => {
        visited.learn(host);
        if (visited.isDue(host)) await tryOut(host);
      }),
    isBusy: visits.isBusy,
  };
}
