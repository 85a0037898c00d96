import { session } from '../sessions/decider.ts';
import type { SessionState } from '../sessions/commands.ts';
import { sessionErasedError } from '../erasure/errors.ts';
import { headOf } from '../eventlog/append.ts';
import type { StreamSource } from '../eventlog/reading/reportDamage.ts';
import { readPage } from '../eventlog/reading/readWhole.ts';
import { sessionStream } from '../eventlog/streams.ts';
import type { KnownEvent } from '../eventlog/reading/wholeStream.ts';
import { LIMITS } from '../limits.ts';
import type { Position } from '../ports/eventStore.ts';
import type { Facts } from '../commandHandling/recordEvents.ts';
import { sessionEvents } from '../sessions/history/loadSession.ts';
import type { OpenRun } from './context.ts';
import { endedByOthers, signOf } from './queueing/turnEnds.ts';

/**
 * Right after a run's head stands what it appended itself, or the end of its turn that somebody
 * else appended; what others did after that does not matter. Events may be large.
 */
const NEWS_PAGE = 8;

/** The first event after which the run's turn is not the open one any more. */
function endOfTurn(
  { state: { turn }, state }: OpenRun,
  news: KnownEvent[],
): KnownEvent | undefined {
  let now: SessionState = state;
  return news.find((known) => {
    now = sessionEvents([known]).reduce(session.evolve, now);
    return now.status !== 'running' || now.turn !== turn;
  });
}

/**
 * Looks at what stands where an append of the run met a conflict, and moves the run's head there,
 * but never into a later turn. Resolves with the position of the facts where an append that seemed
 * to fail had written them; undefined where the turn is still open without them.
 * Errors: `turn_interrupted` when somebody else has ended the turn, after the facts or without
 * them, `session_erased`, `stream_damaged`, `store_unavailable`.
 */
export async function afterConflict(
  source: StreamSource,
  run: OpenRun,
  { events }: Facts,
  conflict: unknown,
): Promise<Position | undefined> {
  const page = {
    direction: 'forwards',
    from: run.head.revision + 1,
    limit: NEWS_PAGE,
    maxBytes: LIMITS.store.pageBytes,
  } as const;
  const news = await readPage(source, sessionStream(run.request.session_id), page);
  const own = news.find(({ recorded }) => events.some(({ id }) => id === recorded.id));
  if (news.some(({ event }) => event.type === 'session.erased.v1'))
    throw sessionErasedError(conflict);
  const end = endOfTurn(run, news);
  if (end !== own && end !== undefined) {
    throw endedByOthers(signOf(end.stored)?.end ?? 'ended', conflict);
  }
  const last = end ?? news.at(-1);
  if (last) run.head = headOf(last.recorded, run.head);
  return own?.recorded.position;
}
