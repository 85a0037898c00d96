import type { ForkPoint } from '../events.ts';
import { originErasedError } from '../../erasure/errors.ts';
import type { StreamSource } from '../../eventlog/reading/reportDamage.ts';
import { readPage } from '../../eventlog/reading/readWhole.ts';
import { endsWithErasure } from '../../eventlog/reading/erasureLookup.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import type { DecodedEvent } from '../../eventlog/reading/wholeStream.ts';
import { LIMITS } from '../../limits.ts';
import { forkOriginIn, readOrigins, requireMatchingForkPoint } from './origins.ts';

const FIRST_PAGE = 8;
/** Events of a page are compared with their leaves together, in some milliseconds. */
const LARGEST_PAGE = 128;

/** Reads a session backwards. For a fork, continues in the sessions whose turns it shares. */
interface BackwardReader {
  /** The next older page, oldest first. */
  readOlder(): Promise<DecodedEvent[]>;
  /** The session's first event, once it has been read. */
  beginning(): DecodedEvent | undefined;
  /** The sessions whose turns the session shares, from its first event. */
  origins(beginning: DecodedEvent): Promise<readonly ForkPoint[]>;
  /** True if there are no older events, including those in other sessions. */
  isWhole(): boolean;
}

/**
 * Starts at a revision of the session, by default its last one. Each page doubles the number of
 * events read up to a limit, so that at most twice the needed events are read. `firstPage` is the
 * number of events in the first page; the second has four times as many.
 */
export function createBackwardReader(
  source: StreamSource,
  sessionId: string,
  {
    revision,
    firstPage = FIRST_PAGE,
  }: { revision?: number | undefined; firstPage?: number | undefined },
): BackwardReader {
  let stream = sessionStream(sessionId);
  let from = revision;
  let read = 0;
  let beginning: DecodedEvent | undefined;
  let origins: ForkPoint[] | undefined;
  let entered = 0;

  const originsAfter = async (first: DecodedEvent): Promise<ForkPoint[]> =>
    (origins ??= await readOrigins(source, first));

  /** Continues in the nearest session whose turns are shared. */
  async function enterOrigin(): Promise<{ stream: string; origin: ForkPoint } | undefined> {
    const origin = (await originsAfter(beginning!))[entered];
    if (!origin) return undefined;
    entered += 1;
    const fork = stream;
    stream = sessionStream(origin.session_id);
    if (await endsWithErasure(source.store, stream)) throw originErasedError();
    from = origin.revision;
    return { stream: fork, origin };
  }

  return {
    async readOlder() {
      const fork = from === -1 ? await enterOrigin() : undefined;
      const page = await readPage(source, stream, {
        direction: 'backwards',
        ...(from !== undefined && { from }),
        limit: read === 0 ? firstPage : Math.min(Math.max(read, 4 * firstPage), LARGEST_PAGE),
        maxBytes: LIMITS.store.pageBytes,
      });
      if (fork) await requireMatchingForkPoint(source, fork.stream, fork.origin, page.at(-1));
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
