import type { LRUCache } from 'lru-cache';
import { session } from '../../domain/session/decider.ts';
import type { Turn } from '../../domain/session/prompt.ts';
import { headOf } from '../../eventlog/append.ts';
import { readBeginning, readPage, type StreamSource } from '../../eventlog/readWhole.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import type { KnownEvent } from '../../eventlog/wholeStream.ts';
import { completedTurns, loadSession, sessionEvents, type LoadedSession } from './loadSession.ts';

/** Sessions as they were when a run last found them at rest, by id. What is recorded never changes, so only what came after has to be read. */
export type SessionMemory = LRUCache<string, LoadedSession>;

/** The last event that is known and what a run or two add; where more has come, the session is read as if it were not known. */
const NEWS_PAGE = 12;

type Select = (turns: Turn[]) => Promise<Turn[]>;

/**
 * `loadSession`, with the memory's help where it has any; a session that was found damaged is read anew.
 * Errors: `stream_damaged` (noted), `store_unavailable`.
 */
export async function recallSession(
  source: StreamSource & { memory: SessionMemory },
  sessionId: string,
  select: Select,
): Promise<LoadedSession> {
  const { damaged, memory } = source;
  const known = damaged.has(sessionStream(sessionId)) ? undefined : memory.get(sessionId);
  const loaded =
    (known && (await withNews(source, { sessionId, known }, select))) ??
    (await loadSession(source, sessionId, select));
  if (loaded.state.status === 'idle') memory.set(sessionId, worthKeeping(loaded));
  return loaded;
}

/**
 * The newest events. That the stream still has its beginning is asked for at the same time where the page won't
 * reach it.
 */
async function readNewest(source: StreamSource, stream: string, known: LoadedSession): Promise<KnownEvent[]> {
  const reading = readPage(source, stream, { direction: 'backwards', limit: NEWS_PAGE });
  const farAway = known.head.revision >= NEWS_PAGE;
  const [newest] = await Promise.all([reading, farAway ? readBeginning(source, stream) : undefined]);
  if (!farAway && newest[0] !== undefined && newest[0].recorded.revision > 0) await readBeginning(source, stream);
  return newest;
}

/** Undefined when the events that came since are too many, or older turns are wanted than are known. */
async function withNews(
  source: StreamSource,
  { sessionId, known }: { sessionId: string; known: LoadedSession },
  select: Select,
): Promise<LoadedSession | undefined> {
  const newest = await readNewest(source, sessionStream(sessionId), known);
  const joint = newest.findIndex(({ recorded }) => recorded.id === known.lastEventId);
  if (joint === -1) return undefined;
  const news = newest.slice(joint + 1);
  const events = sessionEvents(news);
  const turns = [...known.turns, ...completedTurns(events)];
  const history = await select(turns);
  if (!known.whole && history.length === turns.length) return undefined;
  const last = news.at(-1)?.recorded;
  return {
    ...known,
    ...(last && { head: headOf(last), lastEventId: last.id }),
    state: events.reduce(session.evolve, known.state),
    history,
    turns,
  };
}

/** Without the turns that are too old to be shown again, but for one, which shows that there are such. */
function worthKeeping(loaded: LoadedSession): LoadedSession {
  const turns = loaded.turns.slice(-(loaded.history.length + 1));
  return { ...loaded, history: [], turns, whole: loaded.whole && turns.length === loaded.turns.length };
}

/** For what is around the texts of a turn or a session. */
const OVERHEAD_CHARS = 500;

/** About how many characters a remembered session takes. */
export const charsOf = ({ turns }: LoadedSession): number =>
  turns.reduce((sum, turn) => sum + turn.input.length + (turn.output?.length ?? 0) + (turn.tool_calls.length > 0 ? JSON.stringify(turn.tool_calls).length : 0) + OVERHEAD_CHARS, OVERHEAD_CHARS);
