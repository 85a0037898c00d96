import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import {
  watchForStalls,
  type StallWatch,
} from '../../../../../services/followers/projector/stallWatch.ts';
import {
  storeUnavailableError,
  TurnlogError,
} from '../../../../../shared/lib/errors/turnlogError.ts';
import type { EventBatch, Position } from '../../../../../shared/ports/eventStore.ts';
import type { ActiveProjectionStore } from '../../../../../shared/ports/readModels.ts';
import { positionOf, reached } from '../../../../support/builders/history.ts';

/** What the log answers with; a promise that never settles where it hangs. */
let head: () => Promise<Position | undefined>;
let subscription: () => AsyncIterable<EventBatch>;
let apply: () => Promise<[]>;
let stalls: string[];
let watch: StallWatch;

const HANGS = (): Promise<never> => new Promise(() => undefined);

beforeEach(() => {
  jest.useFakeTimers();
  head = async () => positionOf(1);
  apply = async () => [];
  stalls = [];
  watch = watchForStalls({
    log: { head: () => head(), subscribe: () => subscription() },
    store: { apply: () => apply() } as unknown as ActiveProjectionStore,
    onPoll: () => undefined,
    onStall: (why) => void stalls.push(why),
  });
  watch.onApplied(positionOf(1));
});
afterEach(() => {
  watch[Symbol.dispose]();
  jest.useRealTimers();
});

test('a log that has nothing new is no reason to give up', async () => {
  await jest.advanceTimersByTimeAsync(60_000);
  expect(stalls).toEqual([]);
});

test('a log that does not answer, or fails, is one after 5 s, which is told once', async () => {
  head = HANGS;
  await jest.advanceTimersByTimeAsync(4_900);
  expect(stalls).toEqual([]);
  await jest.advanceTimersByTimeAsync(20_000);
  expect(stalls).toEqual(['the log could not be read for 5 s']);
});

test('a subscription that brings nothing of what the log has is one, though the log answers', async () => {
  head = async () => positionOf(2);
  await jest.advanceTimersByTimeAsync(8_000);
  expect(stalls).toEqual(['nothing was applied for 5 s, although the log has new events']);
});

test('batches that are applied are progress, however far the end is', async () => {
  head = async () => positionOf(9_000);
  for (let at = 2; at < 20; at += 1) {
    await jest.advanceTimersByTimeAsync(4_000);
    watch.onApplied(positionOf(at));
  }
  expect(stalls).toEqual([]);
});

test('a batch at work has 20 s', async () => {
  head = async () => positionOf(2);
  apply = HANGS;
  void watch.store.apply([], reached(positionOf(2)));
  await jest.advanceTimersByTimeAsync(19_000);
  expect(stalls).toEqual([]);
  await jest.advanceTimersByTimeAsync(4_000);
  expect(stalls).toEqual(['a batch could not be applied for 20 s']);
});

test('batches that can not be applied are no progress', async () => {
  head = async () => positionOf(2);
  apply = () => Promise.reject(storeUnavailableError('full'));
  for (let tries = 0; tries < 20; tries += 1) {
    await watch.store.apply([], reached(positionOf(2))).catch(() => undefined);
    await jest.advanceTimersByTimeAsync(500);
  }
  expect(stalls).toHaveLength(1);
});

test('a log that refuses the checkpoint has answered, and goes on answering', async () => {
  head = async () => positionOf(2);
  subscription = () => ({
    [Symbol.asyncIterator]: () => ({
      next: () => Promise.reject(new TurnlogError('position_invalid', 'no')),
    }),
  });
  const refused = (async () => {
    for await (const _ of watch.log.subscribe({ batchSize: 1, signal: AbortSignal.abort() }));
  })();
  await expect(refused).rejects.toMatchObject({ code: 'position_invalid' });
  await jest.advanceTimersByTimeAsync(60_000);
  expect(stalls).toEqual([]);
  head = HANGS;
  await jest.advanceTimersByTimeAsync(8_000);
  expect(stalls).toHaveLength(1);
});
