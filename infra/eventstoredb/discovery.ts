import { sleepUntilAborted } from '../../shared/lib/time/sleep.ts';
import type { Host, Target } from './connectionString.ts';
import { createGossip } from './gossip.ts';
import { createSearch } from './search.ts';
import type { AskIfServing } from './serving.ts';
import { NO_ANSWER } from './trouble.ts';
import { createVisits, type Found } from './visit.ts';

/** A look does not wait longer for the slow ones: what they say counts at the next look. */
const LOOK_MS = 300;

export interface Discovery {
  /**
   * One look at every host whose time has come. Undefined while none of them is found to be of use.
   */
  look(): Promise<Found | undefined>;
  /** Nothing is looked for any more: what slower hosts still say is not wanted. */
  rest(): void;
  /**
   * Something new is known of a host: it is the leader, or answers again. It may be tried at once.
   */
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

/** Finds the node to use, by the nodes' own gossip where there are several, and connects to it. */
export function createDiscovery({
  target,
  requiresLeader,
  askIfServing,
  closed,
}: Options): Discovery {
  const search = createSearch(target, closed);
  const { asked, visited, cluster } = search;
  let wanted = false;
  let arrived: Found | undefined;
  let arrival = Promise.withResolvers<void>();

  function arrive(found: Found): void {
    if (!wanted || arrived || closed.aborted) return found.client.close();
    arrived = found;
    arrival.resolve();
  }

  const { visit, isBusy: visiting } = createVisits(search, { askIfServing, onFound: arrive });
  // Not waited for: the leader may be frozen, and who named it is to be asked again whether it
  // still is the leader.
  const onNamed = (node: Host): void => void visit(node);
  const { ask, isBusy: asking } = createGossip(search, { requiresLeader, onNamed });

  return {
    async look() {
      wanted = true;
      const tries = target.cluster ? asked.due().map(ask) : visited.due().map(visit);
      const tick = sleepUntilAborted(LOOK_MS, { signal: closed, ref: false });
      const settled = Promise.all(tries).then(() => (asking() || visiting() ? tick : undefined));
      if (!arrived) await Promise.race([arrival.promise, tick, settled]);
      const found = arrived;
      arrived = undefined;
      arrival = Promise.withResolvers();
      return found;
    },
    rest() {
      wanted = false;
      arrived?.client.close();
      arrived = undefined;
    },
    hint: search.hint,
    pauseMs: () => (target.cluster ? asked : visited).pauseMs(),
    trouble: () =>
      cluster.trouble() ??
      ([...new Set([...visited.troubles(), ...asked.troubles()])].slice(0, 3).join(' ') ||
        NO_ANSWER),
  };
}
