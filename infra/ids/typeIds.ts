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

/** A clock that says no time continues from the latest time, as one that was set back does. */
function newUuid(): string {
  const now = Date.now();
  return generator.generateOrResetWithTs(isTime(now) ? now : 0).toString();
}

/** TypeIDs and UUIDv7s in one order: later ids of this process sort later. */
export const typeIds: Ids = {
  typeId: (prefix, uuid = newUuid()) => fromUUID(uuid, prefix),
  uuid: newUuid,
};
