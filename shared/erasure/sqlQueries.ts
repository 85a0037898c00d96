import type { Position } from '../ports/eventStore.ts';
import type { SqlDatabase } from '../readModels/sqlDatabase.ts';
import type { ErasureRow } from '../readModels/tables.ts';

/** Queries for erasures, part of the read models port. */
export interface ErasureQueries {
  /** Erased streams from the end of the log back to a position. */
  listErasures(page: { downTo: Position | undefined; limit: number }): Promise<ErasureRow[]>;
  /** Erased streams after a position, in the order of the log. */
  listErasuresAfter(page: { after: Position | undefined; limit: number }): Promise<ErasureRow[]>;
}

export function createErasureQueries({ list }: SqlDatabase): ErasureQueries {
  const downTo = list('erasures', 'WHERE position >= ? ORDER BY position DESC LIMIT ?');
  const after = list('erasures', 'WHERE position > ? ORDER BY position LIMIT ?');
  return {
    listErasures: (page) => downTo(page.downTo ?? '', page.limit),
    listErasuresAfter: (page) => after(page.after ?? '', page.limit),
  };
}
