/** Finding the turn of a request that came before: it stands in its session's stream. */
import type { TurnStartedData } from '../sessions/events.ts';
import type { TurnContext } from '../sessions/turns/promptParts.ts';
import { decodeEvent } from '../eventlog/codec.ts';
import { sessionStream } from '../eventlog/streams.ts';
import { storeUnavailableError } from '../lib/errors/turnlogError.ts';
import { LIMITS } from '../limits.ts';
import { sleep, type WaitLimits } from '../lib/time/sleep.ts';
import type { EventStore, Position, StoredEvent } from '../ports/eventStore.ts';
import type { Claim } from '../requests/idempotency.ts';

/** A turn that began for a request, and the revision at which it did. */
export interface RequestTurn {
  session_id: string;
  turn: number;
  owner: string;
  revision: number;
  position: Position;
  /** As it was recorded; undefined for turns of releases that did not. */
  context: TurnContext | undefined;
}

/** Ends a try whose turn another try has begun; that one's end is the answer. */
export class TurnAlreadyStarted extends Error {
  readonly turn: RequestTurn;

  constructor(found: RequestTurn) {
    super(`The request began turn ${found.turn} of ${found.session_id} before.`);
    this.name = 'TurnBegunBefore';
    this.turn = found;
  }
}

const PAGE = 64;
/** A node of a cluster that only follows shows an event some time after others have seen it. */
const LOOK_AGAIN_MS = 50;

/** The turn that an event began for the request; undefined for any other event. */
function startedFor(
  claim: Claim,
  stored: StoredEvent,
): Omit<RequestTurn, 'session_id'> | undefined {
  if (stored.type !== 'session.turn_started.v1') return undefined;
  const { turn, owner, context, idempotency_key } = decodeEvent(stored).data as TurnStartedData;
  return idempotency_key === claim.request_id
    ? { turn, owner, context, revision: stored.revision, position: stored.position }
    : undefined;
}

/** Looks for the turn of a request, each time in what it has not seen yet. */
export interface TurnSearch {
  /** Looks as far as the stream goes. */
  find(): Promise<RequestTurn | undefined>;
  /**
   * Returns once everything up to this revision was looked at, and so a turn that is appended right
   * after it is the request's only one.
   * Errors: TurnBegunBefore, `store_unavailable` also where the bounds end first, the signal's reason.
   */
  requireNone(upTo: number, bounds: WaitLimits): Promise<void>;
}

/** Begins where the first try found its session, page after page; texts stay closed. */
export function createTurnSearch(
  store: Pick<EventStore, 'readStream'>,
  session_id: string,
  claim: Claim,
): TurnSearch {
  let seen = claim.reserved.revision ?? -1;

  async function find(): Promise<RequestTurn | undefined> {
    for (;;) {
      const page = await store.readStream(sessionStream(session_id), {
        direction: 'forwards',
        from: seen + 1,
        limit: PAGE,
        maxBytes: LIMITS.store.pageBytes,
      });
      for (const stored of page) {
        const begun = startedFor(claim, stored);
        if (begun) return { session_id, ...begun };
        seen = stored.revision;
      }
      if (page.length === 0) return undefined;
    }
  }

  return {
    find,
    async requireNone(upTo, { until = Infinity, signal }) {
      while (seen < upTo) {
        const found = await find();
        if (found) throw new TurnAlreadyStarted(found);
        if (seen >= upTo) return;
        if (performance.now() + LOOK_AGAIN_MS > until)
          throw storeUnavailableError('The store does not show all of the session yet.');
        await sleep(LOOK_AGAIN_MS, signal);
      }
    },
  };
}
