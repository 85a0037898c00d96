import type { LRUCache } from 'lru-cache';
import { session } from '../../domain/session/decider.ts';
import type { Turn } from '../../domain/session/prompt.ts';
import { headOf } from '../../eventlog/append.ts';
import { decodeEvent } from '../../eventlog/codec.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import type { EventStore } from '../../ports/eventStore.ts';
import { completedTurns, domainEvents, loadSession, type LoadedSession } from './loadSession.ts';

/** Sessions as they were when a run last found them at rest, by id. What is recorded never changes, so only what came after has to be read. */
export type SessionMemory = LRUCache<string, LoadedSession>;

/** The last event that is known and what a run or two add; where more has come, the session is read as if it were not known. */
const NEWS_PAGE = 12;

type Select = (turns: Turn[]) => Promise<Turn[]>;

/** `loadSession`, with the memory's help where it has any. Errors: `store_unavailable`. */
export async function recallSession({ store, memory }: { store: EventStore; memory: SessionMemory }, sessionId: string, select: Select): Promise<LoadedSession> {
  const known = memory.get(sessionId);
  const loaded = (known && (await withNews(store, { sessionId, known }, select))) ?? (await loadSession(store, sessionId, select));
  if (loaded.state.status === 'idle') memory.set(sessionId, worthKeeping(loaded));
  return loaded;
}

/** Undefined when the events that came since are too many, or older turns are wanted than are known. */
async function withNews(store: EventStore, { sessionId, known }: { sessionId: string; known: LoadedSession }, select: Select): Promise<LoadedSession | undefined> {
  const newest = (await store.readStream(sessionStream(sessionId), { direction: 'backwards', limit: NEWS_PAGE })).toReversed();
  const joint = newest.findIndex(({ id }) => id === known.lastEventId);
  if (joint === -1) return undefined;
  const news = newest.slice(joint + 1).map(decodeEvent);
  const events = domainEvents(news);
  const turns = [...known.turns, ...completedTurns(events)];
  const history = await select(turns);
  if (!known.whole && history.length === turns.length) return undefined;
  const last = news.at(-1);
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
