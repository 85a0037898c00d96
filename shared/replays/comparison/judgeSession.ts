import { createHash } from 'node:crypto';
import type { Ids } from '../../ports/clock.ts';
import type { TurnPair } from './turnPair.ts';

/**
 * A UUIDv7 (RFC 9562, section 5.7) with this time. Its other bits come from the hash of the text.
 */
function uuidOf(milliseconds: number, text: string): string {
  const time = milliseconds.toString(16).padStart(12, '0');
  const hash = createHash('sha256').update(text).digest('hex');
  const variant = (0b1000 | (parseInt(hash[3]!, 16) & 0b11)).toString(16);
  const [a, b, c] = [hash.slice(0, 3), hash.slice(4, 7), hash.slice(7, 19)];
  return `${time.slice(0, 8)}-${time.slice(8)}-7${a}-${variant}${b}-${c}`;
}

/**
 * The id of the session in which a model judges a replayed turn for a check. It is deterministic,
 * so that a resumed replay finds the session and does not ask the model again. The id sorts by the
 * end of the replayed turn.
 */
export function judgeSessionId(
  ids: Pick<Ids, 'typeId'>,
  {
    session_id,
    started,
    recorded_at,
  }: Pick<NonNullable<TurnPair['replayed']>, 'session_id' | 'started' | 'recorded_at'>,
  check: number,
): string {
  const named = JSON.stringify([session_id, started.turn, check]);
  return ids.typeId('session', uuidOf(Date.parse(recorded_at), named));
}
