import type { ForkedFrom, ForkPoint } from '../events.ts';
import type { Summary, Turn } from '../turns/prompt.ts';
import { originErasedError } from '../../erasure/errors.ts';
import { endOfTurn } from './forkPoint.ts';
import { foundDamaged, type StreamSource } from '../../eventlog/reading/reportDamage.ts';
import { readBeginning } from '../../eventlog/reading/readWhole.ts';
import { endsErased } from '../../eventlog/reading/erasureLookup.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import type { KnownEvent } from '../../eventlog/reading/wholeStream.ts';
import { LIMITS } from '../../limits.ts';

/** What a session says in its first event that it was forked from; undefined where it is no fork. */
export const forkedFrom = ({ event }: KnownEvent): ForkedFrom | undefined =>
  event.type === 'session.started.v1' ? event.data.forked_from : undefined;

/**
 * The sessions whose turns a fork shares, the nearest first, given its first event: each shares
 * fewer of them than the one before. None for a session that is no fork.
 * Errors: `stream_damaged` (noted), `release_too_old`, `key_missing`, `store_unavailable`.
 */
export async function originsOf(source: StreamSource, beginning: KnownEvent): Promise<ForkPoint[]> {
  const { stream, metadata } = beginning.recorded;
  const damaged = (reason: string) => foundDamaged(source, stream, { reason, revision: 0 });
  const origins: ForkPoint[] = [];
  for (let from = forkedFrom(beginning); from;) {
    const { session_id, turn, revision, hash } = from;
    if (revision === undefined || hash === undefined || turn >= (origins.at(-1)?.turn ?? Infinity))
      throw await damaged('it does not say where it was forked');
    if (origins.length === LIMITS.turn.origins)
      throw await damaged(`it is a fork of more than ${LIMITS.turn.origins} forks`);
    origins.push({ session_id, turn, revision, hash });
    const first = await readBeginning(source, sessionStream(session_id));
    if (first.recorded.metadata.account_id !== metadata.account_id)
      throw await damaged('it was forked from a session of another account');
    from = forkedFrom(first);
  }
  return origins;
}

/**
 * Whether the event at the place where a stream was forked is the one that it names. Errors:
 * `stream_damaged` (noted).
 */
export async function requireForkPoint(
  source: StreamSource,
  fork: string,
  { session_id, turn, revision, hash }: ForkPoint,
  found: KnownEvent | undefined,
): Promise<void> {
  if (found?.recorded.metadata.hash === hash && endOfTurn(found.stored) === turn) return;
  const reason = `the event at revision ${revision} of ${sessionStream(session_id)} is not the one that it was forked after`;
  throw await foundDamaged(source, fork, { reason, revision: 0 });
}

/** As much of a session as a prompt is made of. */
interface Shown {
  origins: readonly ForkPoint[];
  history: readonly Turn[];
  summary: Summary | undefined;
}

/** The sessions of others whose turns a prompt holds, in full or summed up. */
export function originsShown({ origins, history, summary }: Shown): string[] {
  const oldest = Math.min(history[0]?.turn ?? Infinity, summary?.oldest ?? Infinity);
  return origins.filter(({ turn }) => turn >= oldest).map(({ session_id }) => session_id);
}

/**
 * Whether the turns of others are there that a prompt holds. Errors: `origin_erased` where a session
 * is erased that recorded some, `store_unavailable`.
 */
export async function requireOrigins({ store }: StreamSource, shown: Shown): Promise<void> {
  for (const session_id of originsShown(shown))
    if (await endsErased(store, sessionStream(session_id))) throw originErasedError();
}
