import type { IndexedCache } from '../../lib/memory/indexedCache.ts';
import { session } from '../../sessions/decider.ts';
import type { StreamSource } from '../../eventlog/reading/reportDamage.ts';
import {
  readFirstEvent,
  readEventsSince,
  type NewStreamEvents,
} from '../../eventlog/reading/readWhole.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import { headAfter } from '../../eventlog/reading/wholeStream.ts';
import {
  isAfter,
  loadSession,
  sessionEvents,
  type LoadedSession,
  type SelectTurns,
  findSummary,
} from '../../sessions/history/loadSession.ts';
import { createBackwardTurns } from '../../sessions/history/backwardTurns.ts';
import { originsInPrompt, requireOriginsPresent } from '../../sessions/history/origins.ts';

interface CachedSession extends LoadedSession {
  /** When the stream's beginning was last checked, in milliseconds of `performance.now()`. */
  beginningSeenAt: number;
}

/**
 * Idle sessions by id, as of their last load, indexed by the sessions whose turns they contain.
 * Recorded events never change, so only later events are read.
 */
export type SessionCache = IndexedCache<CachedSession>;

/** The sessions whose turns a fork contains. */
export const originIds = ({ origins }: CachedSession): string[] =>
  origins.map(({ session_id }) => session_id);

/**
 * Room for the last cached event and the events of one or two runs. If there are more, the whole
 * session is read again.
 */
const NEWS_PAGE = 12;

/** Minimum interval between checks that the stream still has its beginning. */
const BEGINNING_CHECK_MS = 30_000;

/**
 * Loads a session, using the cache if possible. A damaged session is fully read. The origins of a
 * fork are checked each time, after `setOrigins`, so that an erasure that this check misses
 * interrupts the run.
 */
export async function loadCachedSession(
  source: StreamSource & {
    memory: Pick<SessionCache, 'get' | 'set' | 'delete'>;
    setOrigins: (origins: readonly string[]) => void;
  },
  sessionId: string,
  select: SelectTurns,
): Promise<LoadedSession> {
  const { damaged, memory } = source;
  const cached = damaged.has(sessionStream(sessionId)) ? undefined : memory.get(sessionId);
  const loaded = (cached && (await applyNewEvents(source, { sessionId, cached }, select))) ?? {
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

/** Reads events after the cached ones. At intervals, also checks the beginning of the stream. */
async function readNewEvents(
  source: StreamSource,
  stream: string,
  cached: CachedSession,
): Promise<NewStreamEvents | undefined> {
  const isCheckDue = performance.now() - cached.beginningSeenAt >= BEGINNING_CHECK_MS;
  const { lastEventId, head } = cached;
  const reading = readEventsSince(
    source,
    stream,
    { id: lastEventId!, revision: head.revision, hash: head.hash },
    NEWS_PAGE,
  );
  const [news] = await Promise.all([
    reading,
    isCheckDue ? readFirstEvent(source, stream) : undefined,
  ]);
  if (isCheckDue || news?.reachesBeginning) cached.beginningSeenAt = performance.now();
  return news;
}

/**
 * Undefined if there are too many new events, or if older turns are needed than those in the cache.
 */
async function applyNewEvents(
  source: StreamSource,
  { sessionId, cached }: { sessionId: string; cached: CachedSession },
  select: SelectTurns,
): Promise<CachedSession | undefined> {
  const streamNews = await readNewEvents(source, sessionStream(sessionId), cached);
  if (!streamNews) return undefined;
  const { events: news } = streamNews;
  const events = sessionEvents(news);
  const summary = await findSummary(source, news, cached.summary);
  const newTurns = createBackwardTurns().add(events);
  const turns = [...cached.turns, ...newTurns].filter(isAfter(summary));
  const whole = cached.whole || !cached.turns.every(isAfter(summary));
  const history = await select(turns, summary);
  if (!whole && history.length === turns.length) return undefined;
  const last = news.at(-1);
  return {
    ...cached,
    ...(last && { head: headAfter(cached.head, news), lastEventId: last.recorded.id }),
    state: events.reduce(session.evolve, cached.state),
    summary,
    history,
    turns,
    whole,
  };
}

/**
 * Removes turns that are too old to be shown again, except one, which indicates that there are
 * older turns.
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

/** Overhead of a turn or a session beside its texts. */
const OVERHEAD_CHARS = 500;

/** Approximate size of a cached session in characters. */
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
