import { beforeEach, expect, test } from '@jest/globals';
import {
  createErasurePoller,
  evictAll,
  evictErased,
} from '../../../../shared/erasure/evictErased.ts';
import type { Position } from '../../../../shared/ports/eventStore.ts';
import { createIndexedCache } from '../../../../shared/lib/memory/indexedCache.ts';
import type { ErasureRow } from '../../../../shared/readModels/tables.ts';
import { originIds, type SessionCache } from '../../../../shared/runs/queueing/sessionCache.ts';
import { createRunsInFlight } from '../../../../shared/runs/queueing/runsInFlight.ts';

const erasure = (stream: string, position = ''): ErasureRow =>
  ({ stream, account_id: 'acct_1', key_ids: [], position: position as Position }) as never;

let sessionCache: SessionCache;
/** The cached sessions whose origins were read. */
let visits: number;
/** What was forgotten of the rows. */
let forgotten: (string | undefined)[];
let keysEvicted: boolean;
let caches: Parameters<typeof evictErased>[0];
beforeEach(() => {
  visits = 0;
  forgotten = [];
  keysEvicted = false;
  sessionCache = createIndexedCache({
    maxSize: 10_000,
    sizeCalculation: () => 1,
    groupsOf: originIds,
  });
  caches = {
    store: { keys: { evict: () => undefined, evictAll: () => (keysEvicted = true) } },
    cachedRows: { forget: (stream?: string) => void forgotten.push(stream) },
    runState: {
      sessionCache,
      runsInFlight: createRunsInFlight(),
      openTurnQueue: { remove: () => undefined },
    },
  } as never;
});
const cacheSession = (id: string, ...origins: string[]): void =>
  void sessionCache.set(id, {
    get origins() {
      visits += 1;
      return origins.map((session_id) => ({ session_id }));
    },
  } as never);

test('the erasure of a session evicts it and the forks that contain its turns, and visits no other', () => {
  for (let number = 0; number < 1_000; number += 1) cacheSession(`session_${number}`);
  cacheSession('fork', 'session_0', 'session_1');
  cacheSession('other', 'session_1');
  visits = 0;
  evictErased(caches, erasure('session-session_0'));
  expect(['session_0', 'fork', 'session_1', 'other'].filter((id) => sessionCache.has(id))).toEqual([
    'session_1',
    'other',
  ]);
  expect(visits).toBe(2);
  expect(forgotten).toEqual([]);
});

test('the erasure of an agent or account forgets the rows of that one', () => {
  evictErased(caches, erasure('agent-agent_1'));
  evictErased(caches, erasure('account-acct_1'));
  expect(forgotten).toEqual(['agent-agent_1', 'account-acct_1']);
});

test('the eviction of everything leaves no key, session or row in the caches', () => {
  cacheSession('session_0');
  evictAll(caches);
  expect([keysEvicted, sessionCache.has('session_0'), forgotten]).toEqual([
    true,
    false,
    [undefined],
  ]);
});

test('many erasures of others are evicted in short steps, the event loop turning between them', async () => {
  let rows = [erasure('session-0', '0')];
  const seen: string[] = [];
  const poll = createErasurePoller({
    readModels: { listErasures: async () => rows, listErasuresAfter: async () => [] },
    forget({ stream }) {
      seen.push(stream);
      for (const began = performance.now(); performance.now() - began < 1;);
    },
    forgetAll: () => void seen.push('all'),
  });
  await poll();
  rows = [
    ...Array.from({ length: 40 }, (_, index) => erasure(`session-${40 - index}`, `${40 - index}`)),
    ...rows,
  ];
  let turns = 0;
  const count = setInterval(() => (turns += 1), 0);
  await poll();
  clearInterval(count);
  expect(seen).toHaveLength(40);
  expect(seen).not.toContain('all');
  expect(turns).toBeGreaterThan(3);
});

test('more erasures of others than are read at a time end all their runs, and no other', async () => {
  const all: ErasureRow[] = [];
  const poll = createErasurePoller({
    readModels: {
      listErasures: async ({ downTo = '', limit }) =>
        all
          .filter(({ position }) => position >= downTo)
          .toReversed()
          .slice(0, limit),
      listErasuresAfter: async ({ after = '', limit }) =>
        all.filter(({ position }) => position > after).slice(0, limit),
    },
    forget: (erased) => evictErased(caches, erased),
    forgetAll: () => evictAll(caches),
  });
  const erase = (from: number, to: number): void => {
    for (let number = from; number < to; number += 1)
      all.push(erasure(`session-session_${number}`, String(number).padStart(6, '0')));
  };
  const runOf = (number: number) =>
    caches.runState.runsInFlight.start({
      account_id: 'acct_1',
      agent_id: 'agent_1',
      session_id: `session_${number}`,
    });
  const isEnded = (run: ReturnType<typeof runOf>): boolean => run.isInterrupted();
  const runs = [0, 1, 1_000, 2_499, 2_500, 5_000].map(runOf);
  // The start reads what was erased before; its runs do not exist.
  erase(0, 1);
  await poll();
  erase(1, 2_500);
  await poll();
  expect(keysEvicted).toBe(true);
  expect(runs.map(isEnded)).toEqual([false, true, true, true, false, false]);
  erase(2_500, 2_501);
  await poll();
  expect(runs.map(isEnded)).toEqual([false, true, true, true, true, false]);
});
