import { createIndexedCache } from '../../../shared/lib/memory/indexedCache.ts';
import { LIMITS } from '../../../shared/limits.ts';
import type { ReadModels } from '../../../shared/ports/readModels.ts';
import type { RenderedPage } from '../http/responses/listResponse.ts';

interface CachedAgentList extends RenderedPage {
  /** The version of the list before its rows were read. */
  version: string;
}

/** The parameters of a response, apart from the version of the list. */
interface AgentListKey {
  accountId: string;
  limit: number | undefined;
  after: string | undefined;
  pretty: boolean;
}

interface AgentListCache {
  find(key: AgentListKey, version: string): CachedAgentList | undefined;
  /** Stores a response unless it is too large. */
  store(key: AgentListKey, response: CachedAgentList): void;
  /** Removes an account's lists after one of its agents was erased. */
  deleteAccount(accountId: string): void;
  clear(): void;
}

/** Memory overhead of a cache entry. */
const ENTRY_BYTES = 512;
const BYTES_OF_CHAR = 2;

const serializeKey = ({ accountId, limit, after, pretty }: AgentListKey): string =>
  JSON.stringify([accountId, limit ?? null, after ?? null, pretty]);

const caches = new WeakMap<ReadModels, AgentListCache>();

/**
 * Caches the serialized lists of an account's agents while the read models report the same version.
 * Reading the version costs far less than serializing the rows: with the cache, 16 connections get
 * 1,000 agents 11 times as often (476 against 42 lists/s on two busy cores) and 10 agents 1.2 times
 * as often. Read the version before the rows, so that a cached list is never older than its version.
 */
export function agentListCache(readModels: ReadModels): AgentListCache {
  let cache = caches.get(readModels);
  if (!cache) caches.set(readModels, (cache = createCache()));
  return cache;
}

function createCache(): AgentListCache {
  const responses = createIndexedCache<CachedAgentList & Pick<AgentListKey, 'accountId'>>({
    groupsOf: ({ accountId }) => [accountId],
    maxSize: LIMITS.cache.agentListBytes,
    maxEntrySize: LIMITS.cache.agentListEntryBytes,
    sizeCalculation: ({ body, version }, key) =>
      body.length + (key.length + version.length) * BYTES_OF_CHAR + ENTRY_BYTES,
  });
  return {
    find(key, version) {
      const cached = responses.get(serializeKey(key));
      return cached?.version === version ? cached : undefined;
    },
    store: (key, response) =>
      void responses.set(serializeKey(key), { ...response, accountId: key.accountId }),
    clear: () => responses.clear(),
    deleteAccount: responses.deleteGroup,
  };
}
