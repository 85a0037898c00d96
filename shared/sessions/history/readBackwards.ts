import type { ForkPoint } from '../events.ts';
import { originErasedError } from '../../erasure/errors.ts';
import type { StreamSource } from '../../eventlog/reading/reportDamage.ts';
import { readPage } from '../../eventlog/reading/readWhole.ts';
import { endsErased } from '../../eventlog/reading/erasureLookup.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import type { KnownEvent } from '../../eventlog/reading/wholeStream.ts';
import { LIMITS } from '../../limits.ts';
import { forkOriginIn, readOrigins, requireMatchingForkPoint } from './origins.ts';

const FIRST_PAGE = 8;
const LATER_PAGE = 32;
const LARGEST_PAGE = 1_024;

/** Reads a session backwards and, of a fork, on in what it shares with others. */
export interface BackwardReader {
  /** The next older page, oldest first. */
  readOlder(): Promise<KnownEvent[]>;
  /** The session's own first event, once it was read. */
  beginning(): KnownEvent | undefined;
  /** The sessions whose turns it shares, given its first event. */
  origins(beginning: KnownEvent): Promise<readonly ForkPoint[]>;
  /** True once there is nothing older, in other sessions either. */
  isWhole(): boolean;
}

/**
 * Begins with an event of the session, the last one where none is named. Each page has as many events
 * as were read before, so no more than twice what is needed is read.
 */
export function createBackwardReader(
  source: StreamSource,
  sessionId: string,
  revision?: number,
): BackwardReader {
  let stream = sessionStream(sessionId);
  let from = revision;
  let read = 0;
  let beginning: KnownEvent | undefined;
  let origins: ForkPoint[] | undefined;
  let entered = 0;

  const originsAfter = async (first: KnownEvent): Promise<ForkPoint[]> =>
    (origins ??= await readOrigins(source, first));

  /** Goes over into the next older session. */
  async function enter(): Promise<{ fork: string; origin: ForkPoint } | undefined> {
    const origin = (await originsAfter(beginning!))[entered];
    if (!origin) return undefined;
    entered += 1;
    const fork = stream;
    stream = sessionStream(origin.session_id);
    if (await endsErased(source.store, stream)) throw originErasedError();
    from = origin.revision;
    return { fork, origin };
  }

  return {
    async readOlder() {
      const place = from === -1 ? await enter() : undefined;
      const page = await readPage(source, stream, {
        direction: 'backwards',
        ...(from !== undefined && { from }),
        limit: read === 0 ? FIRST_PAGE : Math.min(Math.max(read, LATER_PAGE), LARGEST_PAGE),
        maxBytes: LIMITS.store.pageBytes,
      });
      if (place) await requireMatchingForkPoint(source, place.fork, place.origin, page.at(-1));
      read += page.length;
      from = (page[0]?.recorded.revision ?? 0) - 1;
      if (from === -1) beginning ??= page[0];
      return page;
    },
    beginning: () => beginning,
    origins: originsAfter,
    isWhole: () =>
      from === -1 &&
      (origins ? entered === origins.length : !beginning || !forkOriginIn(beginning)),
  };
}
