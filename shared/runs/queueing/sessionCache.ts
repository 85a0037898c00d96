import type { LRUCache } from 'lru-cache';
import { session } from '../../sessions/decider.ts';
import type { Turn } from '../../sessions/turns/prompt.ts';
import type { StreamSource } from '../../eventlog/reading/reportDamage.ts';
import { readBeginning, readNews, type StreamNews } from '../../eventlog/reading/readWhole.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import { headAfter } from '../../eventlog/reading/wholeStream.ts';
import {
  completedTurns,
  loadSession,
  sessionEvents,
  type LoadedSession,
  type SelectTurns,
  findSummary,
} from '../../sessions/history/loadSession.ts';
import { originsInPrompt, requireOriginsPresent } from '../../sessions/history/origins.ts';

interface CachedSession extends LoadedSession {
  /**
   * When its stream was last seen to have its beginning, in milliseconds of `performance.now()`.
   */
  beginningSeenAt: number;
}

/**
 * Sessions as they were when a run last found them at rest, by id. What is recorded never changes,
 * so only what came after has to be read.
 */
export type SessionCache = LRUCache<string, CachedSession>;

/** Room for the last known event and what a run or two add; with more, all is read again. */
const NEWS_PAGE = 12;

/** How often it is asked whether the stream still has its beginning, at the most. */
const BEGINNING_CHECK_MS = 30_000;

/**
 * `loadSession`, with the memory's help where it has any; a session that was found damaged is read
 * anew. That what a fork shows of others is still there is asked each time, after `setOrigins` was
 * told of whose it is: an erasure that the answer does not know of finds who draws on it.
 */
export async function loadCachedSession(
  source: StreamSource & { memory: SessionCache; setOrigins: (origins: readonly string[]) => void },
  sessionId: string,
  select: SelectTurns,
): Promise<LoadedSession> {
  const { damaged, memory } = source;
  const known = damaged.has(sessionStream(sessionId)) ? undefined : memory.get(sessionId);
  const loaded = (known && (await applyNewEvents(source, { sessionId, known }, select))) ?? {
    ...(await loadSession(source, sessionId, select)),
    beginningSeenAt: performance.now(),
  };
  if (loaded.origins.length > 0) {
    source.setOrigins(originsInPrompt(loaded));
    await requireOriginsPresent(source, loaded).catch((error: unknown) => {
      memory.delete(sessionId);
      throw error;
    });
  }
  if (loaded.state.status === 'idle') memory.set(sessionId, trimForCache(loaded));
  if (loaded.state.status === 'erased') memory.delete(sessionId);
  return loaded;
}

/** What came after what is known; at times with a look at the stream's beginning. */
async function readNewEvents(
  source: StreamSource,
  stream: string,
  known: CachedSession,
): Promise<StreamNews | undefined> {
  const due = performance.now() - known.beginningSeenAt >= BEGINNING_CHECK_MS;
  const { lastEventId, head } = known;
  const reading = readNews(
    source,
    stream,
    { id: lastEventId!, revision: head.revision },
    NEWS_PAGE,
  );
  const [found] = await Promise.all([reading, due ? readBeginning(source, stream) : undefined]);
  if (due || found?.begins) known.beginningSeenAt = performance.now();
  return found;
}

/**
 * Undefined when the events that came since are too many, or older turns are wanted than are known.
 */
async function applyNewEvents(
  source: StreamSource,
  { sessionId, known }: { sessionId: string; known: CachedSession },
  select: SelectTurns,
): Promise<CachedSession | undefined> {
  const found = await readNewEvents(source, sessionStream(sessionId), known);
  if (!found) return undefined;
  const { news } = found;
  const events = sessionEvents(news);
  const summary = await findSummary(source, news, known.summary);
  const isAfter = ({ turn }: Turn): boolean => turn > (summary?.up_to_turn ?? 0);
  const turns = [...known.turns, ...completedTurns(events)].filter(isAfter);
  const whole = known.whole || !known.turns.every(isAfter);
  const history = await select(turns, summary);
  if (!whole && history.length === turns.length) return undefined;
  const last = news.at(-1);
  return {
    ...known,
    ...(last && { head: headAfter(known.head, news), lastEventId: last.recorded.id }),
    state: events.reduce(session.evolve, known.state),
    summary,
    history,
    turns,
    whole,
  };
}

/**
 * Without the turns that are too old to be shown again, but for one, which shows that there are
 * such.
 */
function trimForCache(loaded: CachedSession): CachedSession {
  const turns = loaded.turns.slice(-(loaded.history.length + 1));
  return {
    ...loaded,
    history: [],
    turns,
    whole: loaded.whole && turns.length === loaded.turns.length,
  };
}

/** For what is around the texts of a turn or a session. */
const OVERHEAD_CHARS = 500;

/** About how many characters a remembered session takes. */
export const cachedSessionChars = ({ state, turns, summary }: CachedSession): number =>
  (('instruction' in state && state.instruction?.length) || 0) +
  (summary?.text.length ?? 0) +
  turns.reduce(
    (sum, turn) =>
      sum +
      turn.input.length +
      (turn.output?.length ?? 0) +
      (turn.tool_calls.length > 0 ? JSON.stringify(turn.tool_calls).length : 0) +
      OVERHEAD_CHARS,
    OVERHEAD_CHARS,
  );
