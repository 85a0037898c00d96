import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { ReplayRunContext } from '../../../../../services/followers/replays/replayContext.ts';
import { startReplays } from '../../../../../services/followers/replays/start.ts';
import { eventually } from '../../../../support/processes/operator.ts';
import { skipPauses } from '../../../../support/fakes/jumpingClock.ts';

skipPauses();

let running: string[];
let kept: (readonly string[])[];
let logged: unknown[];
let replays: ReturnType<typeof startReplays>;

beforeEach(() => {
  [running, kept, logged] = [['replay_1'], [], []];
  const read = async () => {
    throw new TypeError('nobody expects it');
  };
  const log = (context: unknown) => void logged.push(context);
  const context = {
    readModels: { listRunningReplays: async () => running },
    store: { readStream: read, readAll: read },
    logger: { error: log, warn: log, debug: log, info: log },
  };
  replays = startReplays({
    replaying: {
      context,
      attempts: { keepOnly: async (ids: readonly string[]) => void kept.push(ids) },
    } as unknown as ReplayRunContext,
    pausedReason: () => undefined,
    acquireLeadership: async () => ({
      lost: new AbortController().signal,
      close: async () => undefined,
    }),
  });
});
afterEach(() => replays.close());

test('a replay that can not be run is tried again after longer and longer pauses, and health says so', async () => {
  await eventually(
    async () => logged.length,
    (count) => count >= 1,
  );
  expect(replays.health()).toEqual({
    state: 'active',
    running: 1,
    reason: 'It failed; see the log for the reason.',
  });
  await sleep(1_600);
  expect(logged.length).toBeGreaterThan(1);
  expect(logged.length).toBeLessThan(5);
});

test('the attempts of replays that do not run are removed once', async () => {
  await eventually(
    async () => logged.length,
    (count) => count >= 1,
  );
  running = [];
  await eventually(
    async () => replays.health(),
    (health) => health.running === 0,
  );
  expect(kept).toEqual([['replay_1']]);
});

test('one that has ended meanwhile is not tried again', async () => {
  await eventually(
    async () => logged.length,
    (count) => count >= 1,
  );
  running = [];
  await eventually(
    async () => replays.health(),
    (health) => health.running === 0,
  );
  await replays.close();
  expect(replays.health()).toMatchObject({ state: 'standing_by', running: null });
});
