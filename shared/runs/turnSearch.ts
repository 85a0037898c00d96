import type { TurnStartedData } from '../sessions/events.ts';
import type { TurnContext } from '../sessions/turns/promptParts.ts';
import { decodeEvent } from '../eventlog/codec.ts';
import { sessionStream } from '../eventlog/streams.ts';
import { storeUnavailableError } from '../lib/errors/turnlogError.ts';
import { LIMITS } from '../limits.ts';
import { sleep, type WaitLimits } from '../lib/time/sleep.ts';
import type { EventStore, Position, StoredEvent } from '../ports/eventStore.ts';
import type { Claim } from '../requests/idempotency.ts';

/** A turn that an earlier attempt of a request started, and the revision of its start. */
export interface RequestTurn {
  session_id: string;
  turn: number;
  owner: string;
  revision: number;
  position: Position;
  /** As recorded; undefined for turns of old releases, which did not record it. */
  context: TurnContext | undefined;
}

/** Another attempt of the request has started its turn. The end of that turn is the response. */
export class TurnAlreadyStarted extends Error {
  readonly turn: RequestTurn;

  constructor(turn: RequestTurn) {
    super(`The request has started turn ${turn.turn} of ${turn.session_id} before.`);
    this.name = 'TurnBegunBefore';
    this.turn = turn;
  }
}

const PAGE = 64;
/** Follower nodes of a cluster show events with a delay. */
const POLL_MS = 50;

/** The turn that an event started for the request; undefined for any other event. */
function turnStartedFor(
  claim: Claim,
  stored: StoredEvent,
): Omit<RequestTurn, 'session_id'> | undefined {
  if (stored.type !== 'session.turn_started.v1') return undefined;
  const { turn, owner, context, idempotency_key } = decodeEvent(stored).data as TurnStartedData;
  return idempotency_key === claim.request_id
    ? { turn, owner, context, revision: stored.revision, position: stored.position }
    : undefined;
}

/**
 * Searches the session's stream for the turn of a request. Each call continues where the previous
 * one ended.
 */
export interface TurnSearch {
  /** Searches to the end of the stream. */
  find(): Promise<RequestTurn | undefined>;
  /**
   * Resolves after a search up to this revision, so that a turn appended directly after it is the
   * request's only one. Throws TurnAlreadyStarted, `store_unavailable` (also at the time limit) or
   * the abort reason.
   */
  requireNone(upTo: number, bounds: WaitLimits): Promise<void>;
}

/** Searches from the revision that the first attempt reserved. Decrypts no texts. */
export function createTurnSearch(
  store: Pick<EventStore, 'readStream'>,
  session_id: string,
  claim: Claim,
): TurnSearch {
  let scannedTo = claim.reserved.revision ?? -1;

  async function find(): Promise<RequestTurn | undefined> {
    for (;;) {
      const page = await store.readStream(sessionStream(session_id), {
        direction: 'forwards',
        from: scannedTo + 1,
        limit: PAGE,
        maxBytes: LIMITS.store.pageBytes,
      });
      for (const stored of page) {
        const turn = turnStartedFor(claim, stored);
        if (turn) return { session_id, ...turn };
        scannedTo = stored.revision;
      }
      if (page.length === 0) return undefined;
    }
  }

  return {
    find,
    async requireNone(upTo, { until = Infinity, signal }) {
      while (scannedTo < upTo) {
        const turn = await find();
        if (turn) throw new TurnAlreadyStarted(turn);
        if (scannedTo >= upTo) return;
        if (performance.now() + POLL_MS > until)
          throw storeUnavailableError('The store does not show all of the session yet.');
        await sleep(POLL_MS, signal);
      }
    },
  };
}
