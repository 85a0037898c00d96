import { createBackReader } from './readBackwards.ts';
import { originErasedError, sessionErasedError } from '../../erasure/errors.ts';
import type { StreamSource } from '../../eventlog/reading/reportDamage.ts';
import { readPage } from '../../eventlog/reading/readWhole.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import type { KnownEvent } from '../../eventlog/reading/wholeStream.ts';

/** Refuses what an erasure emptied, of the session itself or of one whose turns it shares. */
function requireTexts(page: readonly KnownEvent[], sessionId: string): void {
  const emptied = page.find(({ recorded }) => recorded.erased)?.recorded;
  if (!emptied) return;
  throw emptied.stream === sessionStream(sessionId) ? sessionErasedError() : originErasedError();
}

/**
 * The events of a session from a revision, or from its newest event, back to its beginning and, of a
 * fork, on in the sessions whose turns it shares: in pages, the newest page first, each oldest first.
 * Whoever builds requests again reads what was said before through here.
 * Errors: `session_erased`, `origin_erased`, and those of readPage.
 */
export async function* historyBefore(
  source: StreamSource,
  sessionId: string,
  revision?: number,
): AsyncGenerator<KnownEvent[], void> {
  const reader = createBackReader(source, sessionId, revision);
  do {
    const page = await reader.older();
    requireTexts(page, sessionId);
    if (page.length === 0) return;
    yield page;
  } while (!reader.isWhole());
}

/** Where an event is that holds a summary. */
export interface SummaryPlace {
  session_id: string;
  revision: number;
}

/**
 * What an event says in short of the turns up to one, to the session whose requests hold it. Errors:
 * those of historyBefore.
 */
export async function summaryAt(
  source: StreamSource,
  sessionId: string,
  { session_id, revision }: SummaryPlace,
): Promise<string | undefined> {
  const place = { direction: 'forwards', from: revision, limit: 1 } as const;
  const page = await readPage(source, sessionStream(session_id), place);
  requireTexts(page, sessionId);
  const event = page[0]?.event;
  return event?.type === 'session.compacted.v1' ? event.data.summary : undefined;
}
