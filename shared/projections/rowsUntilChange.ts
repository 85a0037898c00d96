import { LRUCache } from 'lru-cache';
import { LIMITS } from '../limits.ts';
import type { ReadModels } from '../ports/readModels.ts';
import type { ProgressSource } from './progress.ts';

const MAX_ROWS = 10_000;

/** What every request and every run reads, and few events change. */
type Rows = Pick<ReadModels, 'findApiKey' | 'findApiKeyByHash' | 'findAgent'>;

/** Rows of one generation at a time. */
interface RowsOfGeneration extends Rows {
  /** The one that is read now. Errors: `store_unavailable` while there is none. */
  generation: () => number;
}

/** The texts that take room; the rest of a row is short. */
interface Texts {
  name: string;
  instruction?: string;
}

/**
 * Remembers rows until the projector of this process has applied anything but events of sessions, or
 * another generation is read, which may go over at any time. What was shown is so still seen by every
 * later query: the projector tells both in one message.
 */
export function rowsUntilChange(readModels: RowsOfGeneration, progress: ProgressSource): Rows {
  let changes = 0;
  let generation: number | undefined;
  const memories: { clear: () => void }[] = [];
  function forgetAll(): void {
    changes += 1;
    memories.forEach((memory) => memory.clear());
  }
  progress.subscribe(({ onlySessions }) => {
    if (!onlySessions) forgetAll();
  });

  function remembering<Row extends Texts>(find: (id: string) => Promise<Row | undefined>) {
    const rows = new LRUCache<string, Row>({
      max: MAX_ROWS,
      maxSize: LIMITS.cache.rowChars,
      sizeCalculation: ({ name, instruction = '' }) => name.length + instruction.length + 1,
    });
    memories.push(rows);
    return async (id: string): Promise<Row | undefined> => {
      const current = readModels.generation();
      if (current !== generation) forgetAll();
      generation = current;
      const known = rows.get(id);
      if (known) return known;
      const before = changes;
      const row = await find(id);
      if (row && changes === before) rows.set(id, row);
      return row;
    };
  }

  return {
    findApiKey: remembering(readModels.findApiKey),
    findApiKeyByHash: remembering(readModels.findApiKeyByHash),
    findAgent: remembering(readModels.findAgent),
  };
}
