import { beforeEach, expect, test } from '@jest/globals';
import {
  createIndexedCache,
  type IndexedCache,
} from '../../../../../shared/lib/memory/indexedCache.ts';

interface Entry {
  groups: string[];
}

let cache: IndexedCache<Entry>;
/** The entries whose groups were read. */
let visited: Entry[];
beforeEach(() => {
  visited = [];
  cache = createIndexedCache<Entry>({
    maxSize: 4,
    sizeCalculation: () => 1,
    groupsOf(entry) {
      visited.push(entry);
      return entry.groups;
    },
  });
});
const keys = (): string[] => [...cache.keys()].toSorted();

test('deletes the entries of a group, and visits no other', () => {
  const [one, both, other] = [['1'], ['1', '2'], ['2']].map((groups) => ({ groups }));
  cache.set('one', one);
  cache.set('both', both);
  cache.set('other', other);
  visited = [];
  cache.deleteGroup('1');
  expect(keys()).toEqual(['other']);
  expect(visited).toEqual([one, both]);
  cache.deleteGroup('nothing');
  expect(keys()).toEqual(['other']);
});

test('an entry that was replaced belongs to its later groups only', () => {
  cache.set('a', { groups: ['1'] });
  cache.set('a', { groups: ['2'] });
  cache.deleteGroup('1');
  expect(keys()).toEqual(['a']);
  cache.set('a', { groups: ['2'] });
  cache.deleteGroup('2');
  expect(keys()).toEqual([]);
});

test('an entry that was evicted or deleted and stored again is found once', () => {
  const old = { groups: ['1'] };
  cache.set('a', old);
  for (const key of ['b', 'c', 'd', 'e']) cache.set(key, { groups: ['2'] });
  expect(keys()).toEqual(['b', 'c', 'd', 'e']);
  visited = [];
  cache.deleteGroup('1');
  expect(visited).toEqual([]);
  cache.clear();
  cache.deleteGroup('2');
  cache.set('b', { groups: ['3'] });
  cache.deleteGroup('2');
  expect(keys()).toEqual(['b']);
});

test('calls back after an insertion, which is then indexed', () => {
  const sizes: number[] = [];
  const own = createIndexedCache<Entry>({
    maxSize: 4,
    sizeCalculation: () => 1,
    groupsOf: ({ groups }) => groups,
    onInsert: () => void (sizes.push(own.size) === 2 && own.deleteGroup('2')),
  });
  own.set('a', { groups: ['1'] });
  own.set('b', { groups: ['2'] });
  expect(sizes).toEqual([1, 2]);
  expect([...own.keys()]).toEqual(['a']);
});
