import { typeidUnboxed } from 'typeid-js';
import { uuidv7 } from 'uuidv7';
import type { Ids } from '../../shared/ports/clock.ts';

/**
 * TypeIDs and UUIDv7s, both monotonic within the process, so that what is created later sorts later
 * also within one millisecond. TypeIDs stay so when the clock is put back, UUIDs by up to ten
 * seconds.
 */
export const typeIds: Ids = {
  typeId: (prefix) => typeidUnboxed(prefix),
  // A run takes six: this library fetches random bytes for several at a time, which makes one four
  // times as fast.
  uuid: uuidv7,
};
