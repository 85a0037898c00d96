import type { SessionEvent } from '../events.ts';
import type { Summary } from '../turns/prompt.ts';
import type { StreamSource } from '../../eventlog/reading/reportDamage.ts';
import { readPage } from '../../eventlog/reading/readWhole.ts';
import { sessionStream, streamId } from '../../eventlog/streams.ts';
import type { KnownEvent } from '../../eventlog/reading/wholeStream.ts';

const summaryIn = (known: KnownEvent | undefined): Summary | undefined => {
  const event = known?.event as SessionEvent | undefined;
  if (event?.type !== 'session.compacted.v1') return undefined;
  const { summary, from_turn, up_to_turn, dropped = 0, summary_revision } = event.data;
  const { stream, revision } = known!.recorded;
  const oldest = summary_revision === undefined ? from_turn : 1;
  return { text: summary, up_to_turn, dropped, oldest, session_id: streamId(stream), revision };
};

/**
 * The newest summary of a session, given its newest events: it is among them, or the start of a
 * turn names it. `known` is the newest one before them. Errors: those of readPage.
 */
export async function summaryOf(
  source: StreamSource,
  newest: readonly KnownEvent[],
  known?: Summary,
): Promise<Summary | undefined> {
  for (const event of newest.toReversed()) {
    const found = summaryIn(event);
    if (found) return found;
    const started = event.event as SessionEvent;
    if (started.type !== 'session.turn_started.v1') continue;
    const { summary_revision, summary_session_id = streamId(event.recorded.stream) } = started.data;
    if (summary_revision === undefined) return known;
    const isKnown = known?.session_id === summary_session_id;
    if (isKnown && known.revision === summary_revision) return known;
    const page = { direction: 'forwards', from: summary_revision, limit: 1 } as const;
    return summaryIn((await readPage(source, sessionStream(summary_session_id), page))[0]);
  }
  return known;
}

/** How an event of a session names a summary. */
export const summaryNamed = (
  { session_id, revision }: Summary,
  sessionId: string,
): { summary_revision: number; summary_session_id?: string } => ({
  summary_revision: revision,
  ...(session_id !== sessionId && { summary_session_id: session_id }),
});
