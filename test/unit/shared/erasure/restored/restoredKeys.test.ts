import { expect, test } from '@jest/globals';
import { createRestoredKeysCheck } from '../../../../../shared/erasure/restored/restoredKeys.ts';
import { storeUnavailableError } from '../../../../../shared/lib/errors/turnlogError.ts';
import type { FoundKey } from '../../../../../shared/ports/keyStore.ts';
import type { ErasureRow } from '../../../../../shared/readModels/tables.ts';
import { positionOf } from '../../../../support/builders/history.ts';

const row = (place: number): ErasureRow => ({
  stream: `session-session_${place}`,
  account_id: 'acct_1',
  key_ids: [`key-of-${place}`],
  position: positionOf(place),
  revision: 1,
});
const key = { key_id: '', master_key_id: '', wrapped: new Uint8Array() };

function setUp(count: number) {
  const rows = Array.from({ length: count }, (_, place) => row(place));
  const kept = new Map<string, FoundKey>(
    rows.map(({ key_ids: [id] }) => [id!, 'destroyed' as const]),
  );
  const open: string[] = [];
  const read = { rows: 0, away: false };
  let now = 0;
  const check = createRestoredKeysCheck(
    {
      keys: {
        find: async (ids) => {
          if (read.away) throw storeUnavailableError('away');
          return new Map(ids.flatMap((id) => (kept.has(id) ? [[id, kept.get(id)!]] : [])));
        },
        listErasures: async () => open.map((stream) => ({ stream, why: '' })),
      },
      readModels: {
        listErasures: async ({ limit }) => rows.toReversed().slice(0, limit),
        async listErasuresAfter({ after, limit }) {
          const page = rows
            .filter(({ position }) => after === undefined || position > after)
            .slice(0, limit);
          read.rows += page.length;
          return page;
        },
      },
    },
    () => now,
  );
  return {
    check,
    open,
    read,
    restore: (place: number) => void kept.set(`key-of-${place}`, key),
    destroy: (place: number) => void kept.set(`key-of-${place}`, 'destroyed'),
    pass: (ms: number) => void (now += ms),
  };
}

test('a key that exists is found however many erasures came later, in steps of a bounded size', async () => {
  const { check, restore, read, destroy } = setUp(5_000);
  restore(4_000);
  await check.checkNewest();
  expect(check.reason()).toBeUndefined();
  let steps = 0;
  for (; check.reason() === undefined; steps += 1) {
    const before = read.rows;
    await check.step();
    expect(read.rows - before).toBeLessThanOrEqual(2_000);
  }
  expect([steps, check.reason()]).toEqual([3, expect.stringContaining('session-session_4000')]);
  await check.step();
  expect(check.reason()).toContain('session-session_4000');
  destroy(4_000);
  await check.step();
  expect(check.reason()).toBeUndefined();
});

test('the newest erasures are checked at once, and a key that was lost counts for none', async () => {
  const { check, restore } = setUp(1_000);
  restore(999);
  await check.checkNewest();
  expect(check.reason()).toContain('session-session_999');
});

test('a step that a store fails goes on where it was', async () => {
  const { check, restore, read } = setUp(3_000);
  restore(2_900);
  await check.step();
  read.away = true;
  await expect(check.step()).rejects.toMatchObject({ code: 'store_unavailable' });
  read.away = false;
  const before = read.rows;
  await check.step();
  expect([read.rows - before, check.reason()]).toEqual([1_000, expect.stringContaining('_2900')]);
});

test('an erasure that is not finished is none of those whose keys were restored', async () => {
  const { check, restore, open } = setUp(10);
  restore(3);
  open.push('session-session_3');
  await check.checkNewest();
  await check.step();
  expect(check.reason()).toBeUndefined();
});

test('all erasures are checked again after an hour, and no sooner', async () => {
  const { check, restore, pass, read } = setUp(10);
  await check.step();
  restore(0);
  await check.step();
  expect([read.rows, check.reason()]).toEqual([10, undefined]);
  pass(3_600_000);
  await check.step();
  expect(check.reason()).toContain('session-session_0');
});

test('no more than a hundred streams are kept, and the others are found when those are done', async () => {
  const { check, restore, destroy } = setUp(300);
  for (let place = 0; place < 300; place += 1) restore(place);
  await check.step();
  expect(check.reason()).toContain('of 100 or more');
  for (let place = 0; place < 299; place += 1) destroy(place);
  await check.step();
  expect(check.reason()).toContain('session-session_299');
});
