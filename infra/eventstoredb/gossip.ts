import type { HostClient } from './clientInternals.ts';
import { hostName, type Host } from './connectionString.ts';
import { createOncePerHost } from './oncePerHost.ts';
import type { Search } from './search.ts';
import { isRefused } from './serverErrors.ts';
import { troubleWith } from './trouble.ts';

interface Gossip {
  /** Asks a host which node to use. */
  ask(host: Host): Promise<void>;
  isBusy(): boolean;
}

/** Asks hosts what they know of each other, each once at a time. */
export function createGossip(
  search: Search,
  { requiresLeader, onNamed }: { requiresLeader: boolean; onNamed: (node: Host) => void },
): Gossip {
  const { target, asked, visited, cluster } = search;
  const questions = createOncePerHost();
  let lastNamed: string | undefined;

  async function nodeNamedBy(host: Host): Promise<Host | undefined> {
    let client: HostClient | undefined;
    try {
      client = search.open(host);
      const known = await search.membersKnownTo(client);
      asked.answered(host);
      visited.note(host, undefined);
      for (const { host: other } of known) asked.learn(other);
      const chosen = cluster.note(host, known);
      // A leader that was not there at the last look may be one that was tried in vain before.
      if (requiresLeader && chosen && hostName(chosen) !== lastNamed) visited.forgive(chosen);
      lastNamed = chosen && hostName(chosen);
      return chosen;
    } catch (error) {
      cluster.forget(host);
      asked.failed(host, troubleWith(host, target, error), isRefused(error));
      return undefined;
    } finally {
      client?.close();
    }
  }

  return {
    ask: (host) =>
      questions.run(host, async () => {
        const node = await nodeNamedBy(host);
        if (node) onNamed(node);
      }),
    isBusy: questions.isBusy,
  };
}
