import { LRUCache } from 'lru-cache';

/** A cache whose entries belong to groups, such as those of an account. */
export type IndexedCache<Value extends object> = LRUCache<string, Value> & {
  /** Deletes the entries of a group. The other entries are not visited. */
  deleteGroup(group: string): void;
};

interface IndexedCacheOptions<Value extends object> {
  maxSize: number;
  maxEntrySize?: number;
  sizeCalculation: (value: Value, key: string) => number;
  /** Called after an entry was inserted. */
  onInsert?: () => void;
  /** The groups of an entry. They must not change while it is cached. */
  groupsOf: (value: Value) => readonly string[];
}

/** Creates an LRU cache with an index of its entries by group. */
export function createIndexedCache<Value extends object>({
  groupsOf,
  onInsert,
  ...options
}: IndexedCacheOptions<Value>): IndexedCache<Value> {
  const keysByGroup = new Map<string, Set<string>>();

  function add(value: Value, key: string): void {
    for (const group of groupsOf(value)) {
      const keys = keysByGroup.get(group);
      if (keys) keys.add(key);
      else keysByGroup.set(group, new Set([key]));
    }
  }

  function remove(value: Value, key: string): void {
    for (const group of groupsOf(value)) {
      const keys = keysByGroup.get(group);
      keys?.delete(key);
      if (keys?.size === 0) keysByGroup.delete(group);
    }
  }

  const cache = new LRUCache<string, Value>({
    ...options,
    dispose: remove,
    onInsert(value, key) {
      add(value, key);
      onInsert?.();
    },
  });
  return Object.assign(cache, {
    deleteGroup(group: string): void {
      for (const key of keysByGroup.get(group) ?? []) cache.delete(key);
    },
  });
}
