import type { ForkedFrom, ForkPoint } from '../events.ts';
import type { Summary, Turn } from '../turns/prompt.ts';
import { originErasedError } from '../../erasure/errors.ts';
import { foundDamaged, type StreamSource } from '../../eventlog/reading/reportDamage.ts';
import { readBeginning, readPage } from '../../eventlog/reading/readWhole.ts';
import { endsErased } from '../../eventlog/reading/erasureLookup.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import type { KnownEvent } from '../../eventlog/reading/wholeStream.ts';
import { LIMITS } from '../../limits.ts';
import type { StoredEvent } from '../../ports/eventStore.ts';
import { decodeEvent } from '../../eventlog/codec.ts';
import { isTurnlogError } from '../../lib/errors/turnlogError.ts';

const ENDS: ReadonlySet<string> = new Set([
  'session.turn_completed.v1',
  'session.turn_failed.v1',
  'session.turn_interrupted.v1',
]);

/** The number of the turn that an event ended; undefined for any other event. */
export const endedTurnNumber = (stored: StoredEvent): number | undefined =>
  ENDS.has(stored.type) ? (decodeEvent(stored).data as { turn: number }).turn : undefined;

/** What a session says in its first event that it was forked from; undefined where it is no fork. */
export const forkOriginIn = ({ event }: KnownEvent): ForkedFrom | undefined =>
  event.type === 'session.started.v1' ? event.data.forked_from : undefined;

/**
 * The sessions whose turns a fork shares, the nearest first, given its first event: each shares
 * fewer of them than the one before. None for a session that is no fork.
 */
export async function readOrigins(
  source: StreamSource,
  beginning: KnownEvent,
): Promise<ForkPoint[]> {
  const { stream, metadata } = beginning.recorded;
  const damaged = (reason: string) => foundDamaged(source, stream, { reason, revision: 0 });
  const origins: ForkPoint[] = [];
  for (let from = forkOriginIn(beginning); from;) {
    const { session_id, turn, revision, hash } = from;
    if (revision === undefined || hash === undefined || turn >= (origins.at(-1)?.turn ?? Infinity))
      throw await damaged('it does not say where it was forked');
    if (origins.length === LIMITS.turn.origins)
      throw await damaged(`it is a fork of more than ${LIMITS.turn.origins} forks`);
    origins.push({ session_id, turn, revision, hash });
    const first = await readBeginning(source, sessionStream(session_id));
    if (first.recorded.metadata.account_id !== metadata.account_id)
      throw await damaged('it was forked from a session of another account');
    from = forkOriginIn(first);
  }
  return origins;
}

/** Whether the event at the place where a stream was forked is the one that it names. */
export async function requireMatchingForkPoint(
  source: StreamSource,
  fork: string,
  { session_id, turn, revision, hash }: ForkPoint,
  found: KnownEvent | undefined,
): Promise<void> {
  if (found?.recorded.metadata.hash === hash && endedTurnNumber(found.stored) === turn) return;
  const reason = `the event at revision ${revision} of ${sessionStream(session_id)} is not the one that it was forked after`;
  throw await foundDamaged(source, fork, { reason, revision: 0 });
}

/** As much of a session as a prompt is made of. */
interface PromptContent {
  origins: readonly ForkPoint[];
  history: readonly Turn[];
  summary: Summary | undefined;
}

/** The sessions of others whose turns a prompt holds, in full or summed up. */
export function originsInPrompt({ origins, history, summary }: PromptContent): string[] {
  const oldest = Math.min(history[0]?.turn ?? Infinity, summary?.oldest ?? Infinity);
  return origins.filter(({ turn }) => turn >= oldest).map(({ session_id }) => session_id);
}

/** Whether the turns of others are there that a prompt holds. */
export async function requireOriginsPresent(
  { store }: StreamSource,
  shown: PromptContent,
): Promise<void> {
  for (const session_id of originsInPrompt(shown))
    if (await endsErased(store, sessionStream(session_id))) throw originErasedError();
}

/**
 * The session that recorded a turn, given the first event of one that shares it; undefined where
 * that session shares no such turn. Each fork between them names what it was forked from by its
 * hash.
 */
export async function findRecordingSession(
  source: StreamSource,
  beginning: KnownEvent,
  turn: number,
): Promise<string | undefined> {
  const sharing = (await readOrigins(source, beginning)).filter((origin) => turn <= origin.turn);
  let fork = beginning.recorded.stream;
  for (const origin of sharing) {
    const stream = sessionStream(origin.session_id);
    if (await endsErased(source.store, stream)) throw originErasedError();
    const place = { direction: 'forwards', from: origin.revision, limit: 1 } as const;
    await requireMatchingForkPoint(
      source,
      fork,
      origin,
      (await readPage(source, stream, place))[0],
    );
    fork = stream;
  }
  return sharing.at(-1)?.session_id;
}

/** What a session that shares a turn says of it where the one that recorded it is erased meanwhile. */
export const asOriginErased = (error: unknown): unknown =>
  isTurnlogError(error, 'session_erased') ? originErasedError(error) : error;
