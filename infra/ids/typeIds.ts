import { typeidUnboxed } from 'typeid-js';
import { v7 } from 'uuid';
import type { Ids } from '../../shared/ports/clock.ts';

/** TypeIDs and UUIDv7s, both monotonic within the process, so that what is created later sorts later also within one millisecond. */
export const typeIds: Ids = {
  typeId: (prefix) => typeidUnboxed(prefix),
  uuid: () => v7(),
};
