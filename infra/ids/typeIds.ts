import { fromUUID } from 'typeid-js';
import { V7Generator } from 'uuidv7';
import { pooledRandomBytes } from '../../shared/lib/pooledRandomBytes.ts';
import { isTime, type Ids } from '../../shared/ports/clock.ts';

/**
 * The largest allowance that the generator accepts: the whole range of its time, in milliseconds.
 */
const ANY_ROLLBACK = 2 ** 48 - 1;

const generator = new V7Generator({ nextUint32: () => pooledRandomBytes(4).readUInt32LE() });
// Lists are sorted and paged by id, so later ids must sort later even if the clock was set back by
// an hour. The generator continues from the latest time that it has seen.
generator.setRollbackAllowance(ANY_ROLLBACK);

/** The indexes of a UUID's bytes in its text, and the text that they are written to. */
const PLACES = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34] as const;
const text = Buffer.from('00000000-0000-0000-0000-000000000000', 'latin1');
const DIGITS = Buffer.from('0123456789abcdef', 'latin1');

/** The library's `toString` joins 36 strings, and a run makes a handful of ids. */
function formatUuid(bytes: Readonly<Uint8Array>): string {
  for (let index = 0; index < PLACES.length; index += 1) {
    const [place, byte] = [PLACES[index]!, bytes[index]!];
    text[place] = DIGITS[byte >> 4]!;
    text[place + 1] = DIGITS[byte & 15]!;
  }
  return text.toString('latin1');
}

/** A clock that says no time continues from the latest time, as one that was set back does. */
function newUuid(): string {
  const now = Date.now();
  return formatUuid(generator.generateOrResetWithTs(isTime(now) ? now : 0).bytes);
}

/** TypeIDs and UUIDv7s in one order: later ids of this process sort later. */
export const typeIds: Ids = {
  typeId: (prefix, uuid = newUuid()) => fromUUID(uuid, prefix),
  uuid: newUuid,
};
