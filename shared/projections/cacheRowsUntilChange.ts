import { LRUCache } from 'lru-cache';
import { LIMITS } from '../limits.ts';
import type { ReadModels } from '../ports/readModels.ts';
import type { ProgressSource } from './progress.ts';

/** The size of a row without its texts, in characters: of rows with short texts, ten thousand are cached. */
const ROW_CHARS = 800;

/** The rows that every request and run reads, and that few events change. */
type Rows = Pick<ReadModels, 'findApiKey' | 'findApiKeyByHash' | 'findAgent'>;

/** Rows of the current generation. */
interface RowsOfGeneration extends Rows {
  /** The current generation. Throws `store_unavailable` while there is none. */
  generation: () => number;
}

/** The texts that determine the size of a row. */
interface Texts {
  name: string;
  instruction?: string;
  parameters?: unknown;
}

/**
 * Caches rows until the projector of this process has applied an event that may change one,
 * or until the generation changes, which may happen at any time. Queries still see every shown
 * write, because the projector reports its position and the kind of change in one message.
 */
export function cacheRowsUntilChange(readModels: RowsOfGeneration, progress: ProgressSource): Rows {
  let changes = 0;
  let generation: number | undefined;
  const memories: { clear: () => void }[] = [];
  function forgetAll(): void {
    changes += 1;
    memories.forEach((memory) => memory.clear());
  }
  progress.subscribe(({ keepsKnownRows }) => {
    if (!keepsKnownRows) forgetAll();
  });

  function remembering<Row extends Texts>(find: (id: string) => Promise<Row | undefined>) {
    // With the option `max`, `clear` would write to the places of as many rows.
    const rows = new LRUCache<string, Row>({
      maxSize: LIMITS.cache.rowChars,
      sizeCalculation: ({ name, instruction = '', parameters = null }) =>
        name.length + instruction.length + JSON.stringify(parameters).length + ROW_CHARS,
    });
    memories.push(rows);
    return async (id: string): Promise<Row | undefined> => {
      const current = readModels.generation();
      if (current !== generation) forgetAll();
      generation = current;
      const cached = rows.get(id);
      if (cached) return cached;
      const changesBefore = changes;
      const row = await find(id);
      if (row && changes === changesBefore) rows.set(id, row);
      return row;
    };
  }

  return {
    findApiKey: remembering(readModels.findApiKey),
    findApiKeyByHash: remembering(readModels.findApiKeyByHash),
    findAgent: remembering(readModels.findAgent),
  };
}
