import { afterEach, beforeEach, expect, test } from '@jest/globals';
import {
  LONG_STEP_MS,
  resumeTask,
  runTask,
  startWatchdog,
  type LongStep,
} from '../../../../../shared/lib/concurrency/eventLoopWatchdog.ts';

const LONG_MS = 2 * LONG_STEP_MS;

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
/** Their sum counts: Linux estimates the parts, and either one may stand still for 100 ms of work. */
function useCpu(ms: number): void {
  const until = cpuMs() + ms;
  while (cpuMs() < until);
}

/** Blocks the event loop without using the CPU, as on a machine that is busy with others. */
const block = (ms: number): void => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
};

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
/** After several checks of the watchdog, and what they report some turns later. */
async function settled(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 100));
  for (let turns = 0; turns < 4; turns += 1) await turn();
}

let steps: LongStep[];
let delays: number[];
let watchdog: Disposable;
beforeEach(() => {
  steps = [];
  delays = [];
  watchdog = startWatchdog({
    onLongStep: (step) => steps.push(step),
    onDelay: (ms) => delays.push(ms),
  });
});
afterEach(() => watchdog[Symbol.dispose]());

/** The test runner has steps of its own, of no task. */
const longSteps = (): string[] =>
  steps.map(({ task }) => task).filter((task) => task !== 'unknown');

test('names the task of a step that used the CPU for long', async () => {
  runTask('GET /v1/agents', () => useCpu(LONG_MS));
  await settled();
  expect(longSteps()).toEqual(['GET /v1/agents']);
  expect(steps.find(({ task }) => task !== 'unknown')!.cpu_ms).toBeGreaterThanOrEqual(LONG_MS - 1);
});

test('names the task that continues after a wait, not the one that began meanwhile', async () => {
  const working = runTask('a', async () => {
    await turn();
    await turn();
    resumeTask();
    useCpu(LONG_MS);
  });
  await runTask('b', turn);
  await working;
  await settled();
  expect(longSteps()).toEqual(['a']);
});

test('reports neither a step that waits for the CPU, nor many short ones in one turn', async () => {
  runTask('blocked', () => block(LONG_MS));
  await settled();
  for (let n = 0; n < 20; n += 1) runTask(`short ${n}`, () => useCpu(LONG_MS / 20));
  await settled();
  expect(longSteps()).toEqual([]);
  expect(Math.max(...delays)).toBeGreaterThan(LONG_STEP_MS / 2);
});

test('reports nothing once it is disposed of', async () => {
  watchdog[Symbol.dispose]();
  runTask('a', () => useCpu(LONG_MS));
  await settled();
  expect(longSteps()).toEqual([]);
});
