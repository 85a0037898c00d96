import { expect, test } from '@jest/globals';
import { LIMITS } from '../../../../shared/limits.ts';
import type { Position } from '../../../../shared/ports/eventStore.ts';
import { pendingCounts } from '../../../../shared/storage/counts.ts';

const at = (place: number) => String(place).padStart(8, '0') as Position;
const ONE = { events: 1, bytes: 10, audits: 0 };

test('appends count from their beginning until they fail, or are shown', () => {
  const { begin, drop, all, on } = pendingCounts();
  const first = begin('2026-01-01', ONE);
  const second = begin('2026-01-02', ONE);
  expect(all()).toEqual({ events: 2, bytes: 20, audits: 0 });
  second.appended(at(2));
  first.failed();
  expect([on('2026-01-01').events, on('2026-01-02').events]).toEqual([0, 1]);
  drop(at(1));
  expect(all().events).toBe(1);
  drop(at(2));
  expect(all()).toEqual({ events: 0, bytes: 0, audits: 0 });
});

test('many appends are merged, and count until the last of them is shown', () => {
  const { begin, drop, all } = pendingCounts();
  const many = LIMITS.storage.pendingAppends + 500;
  for (let place = 1; place <= many; place += 1) begin('2026-01-01', ONE).appended(at(place));
  expect(all().events).toBe(many);
  drop(at(many - 1));
  expect(all().events).toBe(501);
  drop(at(many));
  expect(all().events).toBe(0);
});
