import { originsOf, requireForkPoint } from '../history/origins.ts';
import { originErasedError } from '../../erasure/errors.ts';
import { isTurnlogError } from '../../lib/errors/turnlogError.ts';
import type { StreamSource } from '../../eventlog/reading/reportDamage.ts';
import { readPage } from '../../eventlog/reading/readWhole.ts';
import { endsErased } from '../../eventlog/reading/erasureLookup.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import type { KnownEvent } from '../../eventlog/reading/wholeStream.ts';

/**
 * The session that recorded a turn, given the first event of one that shares it; undefined where that
 * session shares no such turn. Each fork between them names what it was forked from by its hash.
 * Errors: `origin_erased`, `stream_damaged` (noted), `release_too_old`, `key_missing`,
 * `store_unavailable`.
 */
export async function recorderOf(
  source: StreamSource,
  beginning: KnownEvent,
  turn: number,
): Promise<string | undefined> {
  const sharing = (await originsOf(source, beginning)).filter((origin) => turn <= origin.turn);
  let fork = beginning.recorded.stream;
  for (const origin of sharing) {
    const stream = sessionStream(origin.session_id);
    if (await endsErased(source.store, stream)) throw originErasedError();
    const place = { direction: 'forwards', from: origin.revision, limit: 1 } as const;
    await requireForkPoint(source, fork, origin, (await readPage(source, stream, place))[0]);
    fork = stream;
  }
  return sharing.at(-1)?.session_id;
}

/** What a session that shares a turn says of it where the one that recorded it is erased meanwhile. */
export const orOriginErased = (error: unknown): unknown =>
  isTurnlogError(error, 'session_erased') ? originErasedError(error) : error;
