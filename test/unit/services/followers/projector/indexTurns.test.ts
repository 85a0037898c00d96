import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, jest, test } from '@jest/globals';
import {
  startIndexer,
  type Indexer,
} from '../../../../../services/followers/projector/indexTurns.ts';
import { createGathering } from '../../../../../services/followers/projector/projection.ts';
import { LIMITS } from '../../../../../shared/limits.ts';
import { formatEncryptedText } from '../../../../../shared/eventlog/encryption/encryptedText.ts';
import {
  commitText,
  createTextEncrypter,
} from '../../../../../shared/eventlog/encryption/protectedText.ts';
import { sessionStream } from '../../../../../shared/eventlog/streams.ts';
import { storeUnavailableError } from '../../../../../shared/lib/errors/turnlogError.ts';
import type {
  RemovalProgress,
  NextTurn,
  TurnsOfAccounts,
  TurnWords,
} from '../../../../../shared/search/turnIndex.ts';
import { positionOf } from '../../../../support/builders/history.ts';
import { eventually } from '../../../../support/processes/operator.ts';
import { recordingLogger } from '../../../../support/stores/projections/projector.ts';
import { memoryKeys } from '../../../../support/fakes/memoryKeys.ts';

let indexer: Indexer;
afterEach(async () => {
  jest.restoreAllMocks();
  await indexer[Symbol.asyncDispose]();
});

/** The words `input` and a number, and the beginnings `inp`, `inpu` and `input`. */
const TOKENS = 5;

const turn = (number: number, account = 'acct_1'): NextTurn => ({
  session_id: 'session_1',
  account_id: account,
  turn: number,
  input: `input ${number}`,
  output: null,
  end_position: positionOf(number),
  revision: 2 * number,
  is_indexed: false,
});

/** A store with turns of which so many are handed out at a time. */
function storeWith(turns: NextTurn[], atOnce = 2) {
  const state = { asked: 0, failures: 0, indexed: [] as TurnWords[] };
  const store = {
    async unindexed() {
      state.asked += 1;
      if (state.failures > 0) {
        state.failures -= 1;
        throw storeUnavailableError('away');
      }
      return turns.slice(state.indexed.length, state.indexed.length + atOnce);
    },
    async unindexedOfAccounts(_after: string): Promise<TurnsOfAccounts> {
      return { turns: [], last: undefined };
    },
    async index(found: readonly TurnWords[]) {
      state.indexed.push(...found);
    },
  };
  return { state, store };
}
const until = (holds: () => boolean): Promise<boolean> =>
  eventually(
    async () => holds(),
    (held) => held,
  );

test('nothing is indexed before the read models have caught up, then all that waits, piece by piece', async () => {
  const turns = [1, 2, 3].map((n) => turn(n));
  const { state, store } = storeWith(turns);
  const { logger, lines } = recordingLogger();
  indexer = startIndexer({ store, keys: memoryKeys().keys, logger });
  indexer.onApplied(false);
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(state.asked).toBe(0);
  indexer.onApplied(true);
  expect(await until(() => state.indexed.length === 3)).toBe(true);
  expect(state.indexed.map(({ tokens }) => tokens.length)).toEqual([TOKENS, TOKENS, TOKENS]);
  expect(new Set(state.indexed.map(({ tokens }) => tokens[0])).size).toBe(1);
  turns.push(turn(4));
  indexer.onApplied(true);
  expect(await until(() => state.indexed.length === 4)).toBe(true);
  expect(lines).toEqual([]);
});

test('a request ends the time in which turns are gathered', async () => {
  const turns: NextTurn[] = [];
  const { state, store } = storeWith(turns);
  const gathering = createGathering(60_000);
  const { logger } = recordingLogger();
  indexer = startIndexer({ store, keys: memoryKeys().keys, logger, gathering });
  indexer.onApplied(true);
  await until(() => state.asked === 1);
  for (let n = 1; n <= 20; n += 1) {
    turns.push(turn(n));
    indexer.onApplied(true);
    gathering.requestBatch();
    expect(await until(() => state.indexed.length === n)).toBe(true);
  }
});

test('an indexer that no search can hurry gathers turns for a tenth of a second', async () => {
  const turns: NextTurn[] = [];
  const { state, store } = storeWith(turns);
  indexer = startIndexer({ store, keys: memoryKeys().keys, logger: recordingLogger().logger });
  indexer.onApplied(true);
  await until(() => state.asked === 1);
  let shortest = Infinity;
  for (let n = 1; n <= 5; n += 1) {
    const startedAt = performance.now();
    turns.push(turn(n));
    indexer.onApplied(true);
    await until(() => state.indexed.length === n);
    shortest = Math.min(shortest, performance.now() - startedAt);
  }
  expect(shortest).toBeLessThan(200);
});

test('a few turns of each account are indexed after a full step of those that are next', async () => {
  const { turnsAtOnce } = LIMITS.search;
  const numbers = Array.from({ length: 2 * turnsAtOnce + 1 }, (_, index) => index + 1);
  const { state, store } = storeWith(
    numbers.map((n) => turn(n)),
    turnsAtOnce,
  );
  const found: { after: string; of: string }[] = [];
  const outOfOrder: TurnWords[] = [];
  const { logger } = recordingLogger();
  indexer = startIndexer({
    store: {
      ...store,
      async unindexedOfAccounts(after) {
        const of = after === '' ? 'acct_2' : 'acct_3';
        found.push({ after, of });
        return { turns: [turn(9, of), turn(9)], last: of === 'acct_3' ? undefined : of };
      },
      async index(turns, isOutOfOrder) {
        if (isOutOfOrder) outOfOrder.push(...turns);
        else await store.index(turns);
      },
    },
    keys: memoryKeys().keys,
    logger,
  });
  indexer.onApplied(true);
  expect(await until(() => state.indexed.length === numbers.length)).toBe(true);
  // The last step takes all that is left.
  expect(await until(() => state.asked === 4)).toBe(true);
  expect(found).toEqual([
    { after: '', of: 'acct_2' },
    { after: 'acct_2', of: 'acct_3' },
  ]);
  expect(outOfOrder.map(({ account_id, tokens }) => [account_id, tokens.length])).toEqual(
    ['acct_2', 'acct_3'].map((account) => [account, TOKENS]),
  );
});

test('while events arrive, indexing pauses for three times as long as a transaction takes', async () => {
  const TRANSACTION_MS = 50;
  const turns = [1, 2, 3].map((n) => turn(n));
  const { state, store } = storeWith(turns, 1);
  const indexedAt: number[] = [];
  indexer = startIndexer({
    store: {
      ...store,
      async index(part) {
        // Longer than events that were applied at the start count as recent.
        const ms = indexedAt.length === 1 ? 1_100 : TRANSACTION_MS;
        await new Promise((resolve) => setTimeout(resolve, ms));
        // The projection is behind; its clients wait all the more.
        if (indexedAt.length === 1) indexer.onApplied(false);
        indexedAt.push(performance.now());
        await store.index(part);
      },
    },
    keys: memoryKeys().keys,
    logger: recordingLogger().logger,
  });
  indexer.onApplied(true);
  expect(await until(() => state.indexed.length === 3)).toBe(true);
  const [first, second, third] = indexedAt as [number, number, number];
  expect(second - first).toBeGreaterThan(1_100 + 2.9 * TRANSACTION_MS);
  // The longest pause.
  expect(third - second).toBeGreaterThan(240 + TRANSACTION_MS);
});

test('a step of one account indexes no more of it out of order', async () => {
  const long = { ...turn(1), input: 'x'.repeat(LIMITS.search.charactersAtOnce) };
  const { state, store } = storeWith([long]);
  const outOfOrder: TurnWords[] = [];
  indexer = startIndexer({
    store: {
      ...store,
      unindexedOfAccounts: async () => ({
        turns: [turn(2), turn(3, 'acct_2')],
        last: undefined,
      }),
      async index(part, isOutOfOrder) {
        if (isOutOfOrder) outOfOrder.push(...part);
        else await store.index(part);
      },
    },
    keys: memoryKeys().keys,
    logger: recordingLogger().logger,
  });
  indexer.onApplied(true);
  expect(await until(() => outOfOrder.length > 0)).toBe(true);
  expect(state.indexed).toHaveLength(1);
  expect(outOfOrder.map(({ account_id }) => account_id)).toEqual(['acct_2']);
});

test('a few turns of each account are indexed after a few long turns, too', async () => {
  const long = { ...turn(1), input: 'x'.repeat(LIMITS.search.charactersAtOnce) };
  const { store } = storeWith([long]);
  let isAsked = false;
  indexer = startIndexer({
    store: {
      ...store,
      async unindexedOfAccounts() {
        isAsked = true;
        return { turns: [], last: undefined };
      },
    },
    keys: memoryKeys().keys,
    logger: recordingLogger().logger,
  });
  indexer.onApplied(true);
  expect(await until(() => isAsked)).toBe(true);
});

test('a turn that was indexed before it was next is not indexed again', async () => {
  const { state, store } = storeWith([{ ...turn(1), is_indexed: true }, turn(2)]);
  const { logger } = recordingLogger();
  indexer = startIndexer({ store, keys: memoryKeys().keys, logger });
  indexer.onApplied(true);
  expect(await until(() => state.indexed.length === 2)).toBe(true);
  expect(state.indexed.map(({ tokens }) => tokens.length)).toEqual([0, TOKENS]);
});

test('a store that is away is tried again, and said once', async () => {
  const { state, store } = storeWith([turn(1)]);
  state.failures = 2;
  const { logger, lines } = recordingLogger();
  const told: unknown[] = [];
  const onTrouble = (reason: string | undefined) => told.push(reason);
  indexer = startIndexer({ store, keys: memoryKeys().keys, logger, onTrouble });
  indexer.onApplied(true);
  expect(await until(() => state.indexed.length === 1)).toBe(true);
  expect(await until(() => lines.length === 2)).toBe(true);
  expect(lines.map(({ message }) => message)).toEqual([
    'Turns cannot be indexed; retrying: away',
    'Turns are indexed again',
  ]);
  expect(told).toEqual(['away', 'away', undefined]);
});

test('no turn is indexed while the disk is full', async () => {
  const { state, store } = storeWith([turn(1)]);
  const { logger, lines } = recordingLogger();
  let isFull = true;
  const hasSpace = async () => !isFull;
  indexer = startIndexer({ store, keys: memoryKeys().keys, logger, hasSpace });
  indexer.onApplied(true);
  expect(await until(() => state.asked === 3)).toBe(true);
  expect(state.indexed).toEqual([]);
  isFull = false;
  expect(await until(() => state.indexed.length === 1)).toBe(true);
  expect(await until(() => lines.length === 2)).toBe(true);
  expect(lines.map(({ message }) => message)).toEqual([
    'Turns cannot be indexed; retrying: too little disk space is free',
    'Turns are indexed again',
  ]);
});

test('what erasures left is deleted while turns can not be indexed', async () => {
  const { state, store } = storeWith([turn(1)]);
  state.failures = Infinity;
  let left = 50;
  const forget = async (): Promise<RemovalProgress> => {
    if (left === 0) return 'nothing';
    left -= 1;
    return 'some';
  };
  const { logger } = recordingLogger();
  indexer = startIndexer({ store: { ...store, forget }, keys: memoryKeys().keys, logger });
  indexer.onApplied(true);
  await until(() => left === 0);
  // One failure, and then all deletions before the next attempt.
  expect(state.asked).toBeLessThanOrEqual(2);
});

test('the trouble of an index ends with its indexer: another has another index', async () => {
  const { state, store } = storeWith([turn(1)]);
  state.failures = Infinity;
  const told: unknown[] = [];
  const onTrouble = (reason: string | undefined) => told.push(reason);
  const { logger } = recordingLogger();
  indexer = startIndexer({ store, keys: memoryKeys().keys, logger, onTrouble });
  indexer.onApplied(true);
  expect(await until(() => told.length > 0)).toBe(true);
  await indexer[Symbol.asyncDispose]();
  expect([told[0], told.at(-1)]).toEqual(['away', undefined]);
});

test('what erasures left is taken out until nothing is, and begun anew no sooner than it may be', async () => {
  const { state, store } = storeWith([turn(1)]);
  const left: RemovalProgress[] = ['begun', 'some', 'nothing', 'begun', 'all'];
  const asked: { begin: boolean; at: number }[] = [];
  const { logger, lines } = recordingLogger();
  indexer = startIndexer({
    store: {
      ...store,
      async forget(begin) {
        asked.push({ begin, at: performance.now() });
        return left.shift() ?? 'nothing';
      },
    },
    keys: memoryKeys().keys,
    logger,
    forgetEveryMs: 300,
  });
  indexer.onApplied(true);
  // Nobody has to tell it that it may begin again.
  expect(await until(() => left.length === 0)).toBe(true);
  expect(state.indexed).toHaveLength(1);
  expect(asked.map(({ begin }) => begin).slice(0, 5)).toEqual([true, false, false, true, false]);
  expect(asked[3]!.at - asked[0]!.at).toBeGreaterThan(290);
  expect(lines).toEqual([]);
});

/** A store of which erasures left something when told so, and what it was asked to begin. */
function storeWithErased() {
  const asked: { begin: boolean; at: number }[] = [];
  let begins = true;
  const store = {
    ...storeWith([]).store,
    async forget(begin: boolean): Promise<RemovalProgress> {
      asked.push({ begin, at: performance.now() });
      const forgotten = begins ? 'begun' : 'nothing';
      begins = false;
      return forgotten;
    },
  };
  return { store, asked, begin: () => void (begins = true) };
}

test('a round that begins early, after a large erasure, puts off the next one', async () => {
  const { store, asked, begin } = storeWithErased();
  const { logger } = recordingLogger();
  indexer = startIndexer({ store, keys: memoryKeys().keys, logger, forgetEveryMs: 600 });
  indexer.onApplied(true);
  await until(() => asked.length > 1);
  await sleep(300);
  begin();
  const early = asked.length;
  indexer.onApplied(true);
  await until(() => asked.slice(early).some((call) => call.begin));
  const next = asked.slice(early).find((call) => call.begin)!;
  expect(next.at - asked[early]!.at).toBeGreaterThan(590);
});

test('an indexer that is closed leaves no timer for the next round', async () => {
  const set = jest.spyOn(globalThis, 'setTimeout');
  const clear = jest.spyOn(globalThis, 'clearTimeout');
  const forgetEveryMs = 123_456;
  const { store, asked } = storeWithErased();
  const { logger } = recordingLogger();
  indexer = startIndexer({ store, keys: memoryKeys().keys, logger, forgetEveryMs });
  indexer.onApplied(true);
  await until(() => asked.length > 1);
  await indexer[Symbol.asyncDispose]();
  const timer = set.mock.results[set.mock.calls.findIndex(([, ms]) => ms === forgetEveryMs)];
  expect(clear.mock.calls.some(([cleared]) => cleared === timer!.value)).toBe(true);
});

test('the keys of the turns of a step are looked up in the key store together', async () => {
  const { open, keys } = memoryKeys();
  const closed = async (number: number, session_id: string): Promise<NextTurn> => {
    const disclosed = commitText(`input ${number}`);
    const close = createTextEncrypter(await keys.issueKey(), sessionStream(session_id));
    return {
      ...turn(number),
      session_id,
      input: formatEncryptedText(close(disclosed), disclosed.sha256),
    };
  };
  const { state, store } = storeWith([await closed(1, 'session_1'), await closed(2, 'session_2')]);
  const reader = open();
  const lookups: number[] = [];
  const counting: typeof reader = {
    ...reader,
    find(ids) {
      const found = reader.find(ids);
      if (found instanceof Promise) lookups.push(ids.size);
      return found;
    },
  };
  indexer = startIndexer({ store, keys: counting, logger: recordingLogger().logger });
  indexer.onApplied(true);
  expect(await until(() => state.indexed.length === 2)).toBe(true);
  expect(state.indexed.map(({ tokens }) => tokens.length)).toEqual([TOKENS, TOKENS]);
  expect(lookups).toEqual([2]);
});

test('turns that can not be read keep the others back no longer than they take', async () => {
  const lost = { ...turn(1), input: `${'k'.repeat(16)}.box~${'0'.repeat(64)}` };
  const { state, store } = storeWith([lost, turn(2)]);
  const { logger, lines } = recordingLogger();
  indexer = startIndexer({ store, keys: memoryKeys().keys, logger });
  indexer.onApplied(true);
  expect(await until(() => state.indexed.length === 2)).toBe(true);
  expect(state.indexed.map(({ tokens }) => tokens.length)).toEqual([0, TOKENS]);
  expect(lines.map(({ level }) => level)).toEqual(['warn']);
});
