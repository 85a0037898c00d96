import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { storeUnavailableError } from '../../../../../shared/lib/errors/turnlogError.ts';
import {
  startLeaderTask,
  type LeaderTask,
} from '../../../../../shared/lib/concurrency/leaderTask.ts';
import { eventually } from '../../../../support/processes/operator.ts';

let work: LeaderTask;
/** What happened, in its order; that it looks again and again is told once. */
let told: string[];
let logged: string[];
let doubt: string | undefined;
let failing: Partial<Record<'become' | 'begin' | 'look', Error>>;
let lost: AbortController;
/** What keeps this process from its turn. */
let others: Promise<void>;

const tell = (what: string): void => {
  if (told.at(-1) !== what) told.push(what);
};
const fail = (what: keyof typeof failing): void => {
  if (failing[what]) throw failing[what];
};

beforeEach(() => {
  [told, logged, doubt, failing, lost] = [[], [], undefined, {}, new AbortController()];
  others = Promise.resolve();
});
afterEach(() => work.close());

function start(): void {
  const log = (_context: unknown, message?: string) => void logged.push(message ?? '');
  work = startLeaderTask({
    name: 'digging',
    async acquireLeadership(signal) {
      await Promise.race([others, once(signal, 'abort')]);
      if (signal.aborted) return undefined;
      fail('become');
      tell('active');
      return { lost: lost.signal, close: async () => tell('left') };
    },
    async begin() {
      fail('begin');
      tell('begun');
      return {
        async poll() {
          fail('look');
          tell('looked');
        },
        stop: async () => tell('ended'),
      };
    },
    pausedReason: () => doubt,
    pollMs: 2,
    logger: { warn: log, error: log },
  });
}

const state = () => [work.isActive(), work.reason()];
const becomes = (active: boolean, reason?: string) =>
  eventually(
    async () => state(),
    ([now, why]) => now === active && why === reason,
  );

test('works while it has the place, and ends what it began when it is closed', async () => {
  start();
  await eventually(
    async () => told,
    () => told.includes('looked'),
  );
  expect(state()).toEqual([true, undefined]);
  await work.close();
  expect(told).toEqual(['active', 'begun', 'looked', 'ended', 'left']);
  expect(work.isActive()).toBe(false);
});

test('stands by while another one works, also to the end', async () => {
  others = new Promise(() => undefined);
  start();
  await sleep(10);
  expect(state()).toEqual([false, undefined]);
  await work.close();
  expect(told).toEqual([]);
});

test('leaves the place that it has lost, and works again when its turn has come', async () => {
  start();
  await becomes(true);
  const turn = Promise.withResolvers<void>();
  others = turn.promise;
  const before = lost;
  lost = new AbortController();
  before.abort();
  await becomes(false);
  expect(told.slice(-2)).toEqual(['ended', 'left']);
  turn.resolve();
  await becomes(true);
});

test.each([
  ['become', false],
  ['begin', false],
  ['look', true],
] as const)('goes on after a failure to %s, and says why until then', async (what, active) => {
  failing[what] = new TypeError('no spade');
  start();
  await becomes(active, 'It failed; see the log for the reason.');
  expect(logged[0]).toMatch(/^digging/);
  delete failing[what];
  await becomes(true);
  if (what === 'begin') expect(told.slice(0, 3)).toEqual(['active', 'left', 'active']);
});

test('waits longer and longer for what fails again and again', async () => {
  failing.begin = storeUnavailableError('No store.');
  start();
  await sleep(700);
  expect(logged.length).toBeLessThan(7);
  expect(work.reason()).toBe('No store.');
});

test('looks for nothing while there is doubt, and says which', async () => {
  doubt = 'The read models are being made anew.';
  start();
  await becomes(true, doubt);
  await sleep(20);
  expect(told).toEqual(['active', 'begun']);
  doubt = undefined;
  await eventually(
    async () => told,
    () => told.includes('looked'),
  );
});

test('ends, rather than asks again and again, where no leadership can be acquired', async () => {
  let asked = 0;
  const idle = startLeaderTask({
    name: 'digging',
    acquireLeadership: async () => {
      asked += 1;
      return undefined;
    },
    begin: () => Promise.reject(new Error('it leads')),
    pausedReason: () => undefined,
    pollMs: 1,
    logger: { warn: () => undefined, error: () => undefined },
  });
  await sleep(20);
  await idle.close();
  expect(asked).toBe(1);
});
