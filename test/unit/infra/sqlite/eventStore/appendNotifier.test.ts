import { once } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { getEnvironmentData, Worker } from 'node:worker_threads';
import { afterAll, expect, test } from '@jest/globals';
import {
  announceAppend,
  countAppends,
  subscribeToAppends,
} from '../../../../../infra/sqlite/eventStore/appendNotifier.ts';

const MODULE = new URL('../../../../../infra/sqlite/eventStore/appendNotifier.ts', import.meta.url)
  .href;
/** Below the interval at which a wait ends without an append. */
const SOON_MS = 100;

/** Announces one append per message from the other thread. */
const other = new Worker(
  `import { parentPort } from 'node:worker_threads';
   const { announceAppend } = await import(${JSON.stringify(MODULE)});
   parentPort.on('message', () => announceAppend());
   parentPort.postMessage('ready');`,
  { eval: true, execArgv: ['--input-type=module', '--no-warnings'] },
);
await once(other, 'message');
afterAll(() => other.terminate());

const { signal } = new AbortController();

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

test('an append of another thread ends every wait, time after time', async () => {
  const first = subscribeToAppends();
  const second = subscribeToAppends();
  const times: number[] = [];
  for (let round = 0; round < 20; round += 1) {
    const count = countAppends();
    const waits = [first, second, second].map((each) => timeOf(() => each.wait(count, signal)));
    other.postMessage('append');
    times.push(...(await Promise.all(waits)));
  }
  first.close();
  second.close();
  expect(times.toSorted((a, b) => a - b)[times.length >> 1]).toBeLessThan(SOON_MS);
});

test('an append that happened between reading and waiting ends the wait', async () => {
  const appends = subscribeToAppends();
  const count = countAppends();
  announceAppend();
  expect(await timeOf(() => appends.wait(count, signal))).toBeLessThan(SOON_MS);
  appends.close();
});

test('appends wake no thread that does not wait for one', async () => {
  const appends = subscribeToAppends();
  const memory = getEnvironmentData('turnlog: number of appends') as SharedArrayBuffer;
  const woken = (): number => Atomics.notify(new Int32Array(memory), 0);
  expect(woken()).toBe(0);
  const wait = appends.wait(countAppends(), signal);
  announceAppend();
  await wait;
  expect(woken()).toBe(0);
  appends.close();
});

test('closing ends a wait, and a later append does not disturb', async () => {
  const appends = subscribeToAppends();
  const wait = timeOf(() => appends.wait(countAppends(), signal));
  appends.close();
  expect(await wait).toBeLessThan(SOON_MS);
  announceAppend();
  await new Promise((resolve) => setImmediate(resolve));
});

test('an abort ends a wait', async () => {
  const appends = subscribeToAppends();
  const stop = new AbortController();
  const wait = timeOf(() => appends.wait(countAppends(), stop.signal));
  stop.abort();
  expect(await wait).toBeLessThan(SOON_MS);
  appends.close();
});

test('waits that have ended keep nothing in memory', async () => {
  setFlagsFromString('--expose_gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const heap = (): number => {
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  const appends = subscribeToAppends();
  const aborted = AbortSignal.abort();
  const waits = 20_000;
  await appends.wait(countAppends(), aborted);
  const before = heap();
  for (let ended = 0; ended < waits; ended += 1) await appends.wait(countAppends(), aborted);
  expect(heap() - before).toBeLessThan(50 * waits);
  appends.close();
});
