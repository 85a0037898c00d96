import { isDamaged } from './failures.ts';
import type { GenerationReader } from './generationReader.ts';

/**
 * Keeps in mind that a search found the index of words damaged: a file may be overwritten where nothing
 * else looks. That does not mend itself, and another generation has another file.
 */
export function noteDamage(current: () => GenerationReader) {
  let found: { generation: number; reason: string } | undefined;
  return {
    /** Errors: those of the search. */
    async noted<Result>(search: () => Promise<Result>): Promise<Result> {
      const { generation } = current();
      try {
        return await search();
      } catch (error) {
        const { cause } = error as Error;
        if (isDamaged(cause)) found = { generation, reason: (cause as Error).message };
        throw error;
      }
    },
    /** One sentence; undefined where no search of this generation has found damage. */
    damaged: (): string | undefined =>
      found?.generation === current().generation
        ? `The index of words is damaged (${found.reason}): rebuild the read models.`
        : undefined,
  };
}
