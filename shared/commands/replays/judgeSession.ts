import { createHash } from 'node:crypto';
import type { TurnPair } from './turnPair.ts';

/** The digits of TypeIDs, in the order of those of `toString(32)`. */
const DIGITS = '0123456789abcdefghjkmnpqrstvwxyz';
const LENGTH = 26;

/** A UUIDv7 of that time whose other bits are the hash's, as TypeIDs write it. */
function idOf(milliseconds: number, hash: Buffer): string {
  const time = BigInt(milliseconds) << 80n;
  const version = (0x7000n | (BigInt(hash.readUInt16BE(0)) & 0x0fffn)) << 64n;
  const variant = (0b10n << 62n) | (hash.readBigUInt64BE(2) >> 2n);
  const digits = (time | version | variant).toString(32).padStart(LENGTH, '0');
  return digits.replace(/./g, (digit) => DIGITS[parseInt(digit, 32)]!);
}

/**
 * The id of the session in which a model judges a replayed turn, for a check of the replay: whoever
 * goes on with the replay finds it, and asks nobody again who has answered. It sorts by the end of
 * the replayed turn.
 */
export function judgeSessionOf(
  {
    session_id,
    started,
    recorded_at,
  }: Pick<NonNullable<TurnPair['replayed']>, 'session_id' | 'started' | 'recorded_at'>,
  check: number,
): string {
  const named = JSON.stringify([session_id, started.turn, check]);
  const hash = createHash('sha256').update(named).digest();
  return `session_${idOf(Date.parse(recorded_at), hash)}`;
}
