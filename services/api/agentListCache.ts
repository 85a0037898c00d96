import { LRUCache } from 'lru-cache';
import { LIMITS } from '../../shared/limits.ts';
import type { ReadModels } from '../../shared/ports/readModels.ts';

interface KeptAnswer {
  version: string;
  body: Buffer;
  next: string | undefined;
}

const kept = new WeakMap<ReadModels, LRUCache<string, KeptAnswer>>();

/**
 * The list of an account's agents in the bytes that were sent before, while the read models say
 * that it has not changed: to ask for the version costs far less than to write a thousand agents as
 * JSON. The version is asked for before the rows, so that what is kept is never older than its
 * name.
 */
export async function keptAnswer(
  readModels: ReadModels,
  accountId: string,
  query: string,
  make: () => Promise<Omit<KeptAnswer, 'version'>>,
): Promise<KeptAnswer> {
  const cache = cacheOf(readModels);
  const key = `${accountId}?${query}`;
  const version = await readModels.agentListVersion(accountId);
  const known = cache.get(key);
  if (known?.version === version) return known;
  const answer = { version, ...(await make()) };
  cache.set(key, answer);
  return answer;
}

function cacheOf(readModels: ReadModels): LRUCache<string, KeptAnswer> {
  let cache = kept.get(readModels);
  if (!cache) {
    cache = new LRUCache<string, KeptAnswer>({
      maxSize: LIMITS.cache.agentListBytes,
      sizeCalculation: ({ body }) => body.length + 1,
    });
    kept.set(readModels, cache);
  }
  return cache;
}
