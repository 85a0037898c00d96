import { beforeEach, expect, test } from '@jest/globals';
import {
  createInstanceMonitor,
  type InstanceMonitor,
} from '../../../../../shared/runs/recovery/closeOrphanedTurns.ts';
import { storeUnavailableError } from '../../../../../shared/lib/errors/turnlogError.ts';

const SWEEP_MS = 2_000;

let now: number;
/** When each instance has beaten last; the list's clock is the same as ours. */
let beats: Map<string, number>;
let away: boolean;
let watch: InstanceMonitor;

beforeEach(() => {
  now = Date.UTC(2026, 0, 1);
  beats = new Map();
  away = false;
  const listDeadInstances = async (olderThanMs: number) => {
    if (away) throw storeUnavailableError('away');
    return [...beats]
      .filter(([, at]) => now - at > olderThanMs)
      .map(([instance_id, at]) => ({ instance_id, last_beat_at: new Date(at).toISOString() }));
  };
  watch = createInstanceMonitor({ listDeadInstances }, () => now);
});

/** Looks every two seconds until `done`, and returns how long that took. */
async function lookUntil(done: () => boolean, limitMs: number): Promise<number> {
  const began = now;
  while (now - began < limitMs) {
    await watch.poll().catch(() => undefined);
    if (done()) break;
    now += SWEEP_MS;
  }
  return now - began;
}

test('an instance that has been silent for 30 s is dead, and known to be within 35 s of its last beat', async () => {
  beats.set('dead', now);
  const took = await lookUntil(() => watch.isDead('dead'), 60_000);
  expect(took).toBeGreaterThanOrEqual(30_000);
  expect(took).toBeLessThanOrEqual(35_000);
});

test('an instance that beats, and one that nobody knows, are not dead', async () => {
  await lookUntil(() => {
    beats.set('alive', now);
    return watch.isDead('alive') || watch.isDead('unknown');
  }, 60_000);
  expect([watch.isDead('alive'), watch.isDead('unknown')]).toEqual([false, false]);
});

test('nobody is dead because the list was away: whoever beats again in time lives, and the others are dead', async () => {
  beats.set('alive', now).set('dead', now);
  away = true;
  await lookUntil(() => false, 60_000);
  away = false;
  await watch.poll();
  now += SWEEP_MS;
  expect(
    await lookUntil(() => watch.isDead('alive') || watch.isDead('dead'), 5_000),
  ).toBeGreaterThanOrEqual(5_000);
  beats.set('alive', now);
  await lookUntil(() => watch.isDead('dead'), 10_000);
  expect([watch.isDead('alive'), watch.isDead('dead')]).toEqual([false, true]);
});

test('a list that goes away makes nobody dead, not even who was before', async () => {
  beats.set('dead', now);
  await lookUntil(() => watch.isDead('dead'), 60_000);
  away = true;
  await expect(watch.poll()).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(watch.isDead('dead')).toBe(false);
});

test('what was seen before this process was held up proves nothing', async () => {
  beats.set('instance', now);
  now += 25_000;
  await watch.poll();
  now += 60_000;
  await watch.poll();
  expect(watch.isDead('instance')).toBe(false);
});

test('an instance that beats after all is alive', async () => {
  beats.set('late', now);
  await lookUntil(() => watch.isDead('late'), 60_000);
  beats.set('late', now);
  await watch.poll();
  expect(watch.isDead('late')).toBe(false);
});
