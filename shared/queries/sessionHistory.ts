import type { StreamSource } from '../eventlog/noteDamage.ts';
import { readPage } from '../eventlog/readWhole.ts';
import { sessionStream } from '../eventlog/streams.ts';
import type { KnownEvent } from '../eventlog/wholeStream.ts';
import { LIMITS } from '../limits.ts';

const FIRST_PAGE = 12;
const LARGEST_PAGE = 1_024;

/**
 * The events of a session from a revision, or from its newest event, back to its beginning: in pages,
 * the newest page first, each oldest first. Whoever builds requests again reads what was said before
 * through here. Errors: those of readPage.
 */
export async function* historyBefore(
  source: StreamSource,
  sessionId: string,
  revision?: number,
): AsyncGenerator<KnownEvent[], void> {
  const stream = sessionStream(sessionId);
  let from = revision;
  for (let limit = FIRST_PAGE; from === undefined || from >= 0;) {
    const page = await readPage(source, stream, {
      direction: 'backwards',
      limit,
      maxBytes: LIMITS.store.pageBytes,
      ...(from !== undefined && { from }),
    });
    const [oldest] = page;
    if (!oldest) return;
    yield page;
    from = oldest.recorded.revision - 1;
    limit = Math.min(2 * limit, LARGEST_PAGE);
  }
}

/** What an event of a session says in short of the turns up to one. Errors: those of readPage. */
export async function summaryAt(
  source: StreamSource,
  sessionId: string,
  revision: number,
): Promise<string | undefined> {
  const place = { direction: 'forwards', from: revision, limit: 1 } as const;
  const [known] = await readPage(source, sessionStream(sessionId), place);
  return known?.event.type === 'session.compacted.v1' ? known.event.data.summary : undefined;
}
