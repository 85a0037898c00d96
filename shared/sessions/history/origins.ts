import type { ForkedFrom, ForkPoint } from '../events.ts';
import type { Summary, Turn } from '../turns/prompt.ts';
import { originErasedError } from '../../erasure/errors.ts';
import { reportDamage, type StreamSource } from '../../eventlog/reading/reportDamage.ts';
import { readFirstEvent, readPage } from '../../eventlog/reading/readWhole.ts';
import { endsWithErasure } from '../../eventlog/reading/erasureLookup.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import type { DecodedEvent } from '../../eventlog/reading/wholeStream.ts';
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

/** The origin in a session's first event; undefined if the session is not a fork. */
export const forkOriginIn = ({ event }: DecodedEvent): ForkedFrom | undefined =>
  event.type === 'session.started.v1' ? event.data.forked_from : undefined;

/**
 * The sessions whose turns a fork shares, nearest first, from the fork's first event. Empty for a
 * session that is not a fork.
 */
export async function readOrigins(
  source: StreamSource,
  beginning: DecodedEvent,
): Promise<ForkPoint[]> {
  const { stream, metadata } = beginning.recorded;
  const damaged = (reason: string) => reportDamage(source, stream, { reason, revision: 0 });
  const origins: ForkPoint[] = [];
  for (let from = forkOriginIn(beginning); from;) {
    const { session_id, turn, revision, hash } = from;
    if (revision === undefined || hash === undefined || turn >= (origins.at(-1)?.turn ?? Infinity))
      throw await damaged('it does not say where it was forked');
    if (origins.length === LIMITS.turn.origins)
      throw await damaged(`it is a fork of more than ${LIMITS.turn.origins} forks`);
    origins.push({ session_id, turn, revision, hash });
    const first = await readFirstEvent(source, sessionStream(session_id));
    if (first.recorded.metadata.account_id !== metadata.account_id)
      throw await damaged('it was forked from a session of another account');
    from = forkOriginIn(first);
  }
  return origins;
}

/** Checks that the event at a fork point is the one that the fork names. */
export async function requireMatchingForkPoint(
  source: StreamSource,
  fork: string,
  { session_id, turn, revision, hash }: ForkPoint,
  origin: DecodedEvent | undefined,
): Promise<void> {
  if (origin?.recorded.metadata.hash === hash && endedTurnNumber(origin.stored) === turn) return;
  const reason = `the event at revision ${revision} of ${sessionStream(session_id)} is not the one that it was forked after`;
  throw await reportDamage(source, fork, { reason, revision: 0 });
}

/** The parts of a session that make up a prompt. */
interface PromptContent {
  origins: readonly ForkPoint[];
  history: readonly Turn[];
  summary: Summary | undefined;
}

/** The other sessions whose turns a prompt contains, verbatim or summarized. */
export function originsInPrompt({ origins, history, summary }: PromptContent): string[] {
  const oldest = Math.min(history[0]?.turn ?? Infinity, summary?.oldest ?? Infinity);
  return origins.filter(({ turn }) => turn >= oldest).map(({ session_id }) => session_id);
}

/** Throws if a session whose turns a prompt contains is erased. */
export async function requireOriginsPresent(
  { store }: StreamSource,
  shown: PromptContent,
): Promise<void> {
  for (const session_id of originsInPrompt(shown))
    if (await endsWithErasure(store, sessionStream(session_id))) throw originErasedError();
}

/**
 * The session that recorded a turn that a fork shares, from the fork's first event; undefined if
 * the fork does not share the turn. Checks the hash of each fork point between them.
 */
export async function findRecordingSession(
  source: StreamSource,
  beginning: DecodedEvent,
  turn: number,
): Promise<string | undefined> {
  const sharing = (await readOrigins(source, beginning)).filter((origin) => turn <= origin.turn);
  let fork = beginning.recorded.stream;
  for (const origin of sharing) {
    const stream = sessionStream(origin.session_id);
    if (await endsWithErasure(source.store, stream)) throw originErasedError();
    const forkPoint = { direction: 'forwards', from: origin.revision, limit: 1 } as const;
    await requireMatchingForkPoint(
      source,
      fork,
      origin,
      (await readPage(source, stream, forkPoint))[0],
    );
    fork = stream;
  }
  return sharing.at(-1)?.session_id;
}

/**
 * Maps `session_erased` to `origin_erased`: for a fork, the session that recorded a shared turn is
 * an origin.
 */
export const asOriginErased = (error: unknown): unknown =>
  isTurnlogError(error, 'session_erased') ? originErasedError(error) : error;
