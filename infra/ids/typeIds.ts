import { fromUUID } from 'typeid-js';
import { V7Generator } from 'uuidv7';
import { pooledRandomBytes } from '../../shared/lib/pooledRandomBytes.ts';
import type { Ids } from '../../shared/ports/clock.ts';

/** All that the generator takes: the whole range of its time, in milliseconds. */
const ANY_ROLLBACK = 2 ** 48 - 1;

const generator = new V7Generator({ nextUint32: () => pooledRandomBytes(4).readUInt32LE() });
// Lists are in the order of ids, and page by them: what is made later must sort later, though the
// clock was put back by an hour. The generator counts on from the latest time that it has seen.
generator.setRollbackAllowance(ANY_ROLLBACK);

const newUuid = (): string => generator.generate().toString();

/** TypeIDs and UUIDv7s in one order: what this process makes later sorts later. */
export const typeIds: Ids = {
  typeId: (prefix, uuid = newUuid()) => fromUUID(uuid, prefix),
  uuid: newUuid,
};
