import type { TurnStartedData } from '../sessions/events.ts';
import type { TurnContext } from '../sessions/turns/promptParts.ts';
import { decodeEvent } from '../eventlog/codec.ts';
import { sessionStream } from '../eventlog/streams.ts';
import { storeUnavailableError } from '../lib/errors/turnlogError.ts';
import { LIMITS } from '../limits.ts';
import { sleep, type WaitLimits } from '../lib/time/sleep.ts';
import { withReadMemory } from '../eventlog/reading/readMemory.ts';
import { isFull } from '../eventlog/reading/wholeStream.ts';
import { createPause } from '../lib/concurrency/yieldToEventLoop.ts';
import type { Position, StoredEvent } from '../ports/eventStore.ts';
import type { Claim } from '../requests/idempotency.ts';
import type { RunContext, RunSlice } from './context.ts';

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

/** Requests whose progress is held in memory; the streams of others are searched again. */
export const REMEMBERED_SEARCHES = 5_000;

const PAGE = { limit: 64, maxBytes: LIMITS.store.pageBytes } as const;
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
interface TurnSearch {
  /**
   * Searches to the end of the stream. Throws `store_unavailable` at the time limit, the abort reason,
   * and what `reserveRead` throws.
   */
  find(bounds: WaitLimits): Promise<RequestTurn | undefined>;
  /**
   * Resolves after a search up to this revision, so that a turn appended directly after it is the
   * request's only one. Throws TurnAlreadyStarted, `store_unavailable`, and as `find`.
   */
  requireNone(upTo: number, bounds: WaitLimits): Promise<void>;
}

/**
 * Searches from the revision that the first attempt reserved, or from where the last search for the
 * same request ended. Decrypts no texts.
 */
export function createTurnSearch(
  {
    store,
    reserveRead,
    runState: { turnSearches },
  }: RunSlice<'store', 'turnSearches'> & Pick<RunContext, 'reserveRead'>,
  { account_id, session_id, claim }: { account_id: string; session_id: string; claim: Claim },
): TurnSearch {
  const key = `${session_id} ${claim.request_id}`;
  let progress = { scannedTo: claim.reserved.revision ?? -1 };

  async function search({
    until = Infinity,
    signal,
  }: WaitLimits): Promise<RequestTurn | undefined> {
    // Searches for the same request advance together.
    progress = turnSearches.get(key) ?? progress;
    turnSearches.set(key, progress);
    const pause = createPause(() => account_id);
    for (;;) {
      await pause();
      const from = progress.scannedTo + 1;
      const options = { ...PAGE, direction: 'forwards', from } as const;
      const page = await store.readStream(sessionStream(session_id), options);
      for (const stored of page) {
        const turn = turnStartedFor(claim, stored);
        if (turn) return { session_id, ...turn };
        progress.scannedTo = Math.max(progress.scannedTo, stored.revision);
      }
      if (!isFull({ ...PAGE, events: page })) return undefined;
      signal?.throwIfAborted();
      // The next attempt of the request continues here.
      if (performance.now() > until)
        throw storeUnavailableError('The session is too long to be searched in time.');
    }
  }

  const find: TurnSearch['find'] = (bounds) =>
    withReadMemory({ reserveRead, waitLimits: bounds }, () => search(bounds));

  return {
    find,
    async requireNone(upTo, bounds) {
      const { until = Infinity, signal } = bounds;
      while (progress.scannedTo < upTo) {
        const turn = await find(bounds);
        if (turn) throw new TurnAlreadyStarted(turn);
        if (progress.scannedTo >= upTo) return;
        if (performance.now() + POLL_MS > until)
          throw storeUnavailableError('The store does not show all of the session yet.');
        await sleep(POLL_MS, signal);
      }
    },
  };
}
