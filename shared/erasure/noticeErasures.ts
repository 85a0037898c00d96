import type { Position } from '../ports/eventStore.ts';
import type { ReadModels } from '../ports/readModels.ts';
import type { ErasureRow } from '../readModels/tables.ts';

/** With more of them in a second, everything is let go of. */
const MOST = 1_000;

interface Noticing {
  readModels: Pick<ReadModels, 'listErasures'>;
  forget: (erased: ErasureRow) => void;
  /** Called where it can't be told what has been erased meanwhile. */
  forgetAll: () => void;
}

/**
 * Notices what anybody has erased, another replica or an operator's command, in the read models.
 * What it gives is to be called about once a second: it looks for what is new since the last time.
 * The first time it finds where the log's erasures end.
 */
export function noticeErasures({ readModels, forget, forgetAll }: Noticing): () => Promise<void> {
  let begun = false;
  let seen: Position | undefined;

  return async () => {
    const limit = begun ? MOST : 1;
    const rows = await readModels.listErasures({ downTo: begun ? seen : undefined, limit });
    const known = rows.at(-1)?.position === seen;
    // The last one that was seen is gone where the log is another one now.
    if (begun && !known && (seen !== undefined || rows.length === limit)) forgetAll();
    if (begun) for (const row of rows) if (row.position !== seen) forget(row);
    begun = true;
    seen = rows[0]?.position ?? seen;
  };
}
