import type { Position } from '../ports/eventStore.ts';
import { integer, json, table, text, word } from '../readModels/table.ts';

export const ERASURE_TABLES = {
  /** Notifies processes which erased streams to evict from their caches. */
  erasures: table({
    columns: {
      stream: text,
      account_id: text,
      /** The destroyed keys. */
      key_ids: json<string[]>(),
      position: word<Position>(),
      revision: integer,
    },
    key: ['stream'],
    indexes: [{ on: ['position'] }],
  }),
};
