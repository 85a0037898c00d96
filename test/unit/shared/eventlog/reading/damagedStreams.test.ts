import { beforeEach, expect, test } from '@jest/globals';
import {
  createDamagedStreams,
  type DamagedStreams,
} from '../../../../../shared/eventlog/reading/damagedStreams.ts';

let found: string[];
let damaged: DamagedStreams;
beforeEach(() => {
  found = [];
  damaged = createDamagedStreams(({ stream }) => found.push(stream));
});

const damageAt = (revision: number | undefined, stream = 'session-1') => ({
  stream,
  reason: 'broken',
  revision,
  first_revision: 0,
  last_revision: 9,
});
const names = (): string[] => damaged.list().map(({ stream }) => stream);

test('a stream is told of once, however often it is found damaged', () => {
  damaged.record(damageAt(3));
  damaged.record({ ...damageAt(3), last_revision: 12 });
  expect([found, damaged.list()]).toEqual([
    ['session-1'],
    [expect.objectContaining({ last_revision: 12 })],
  ]);
});

test.each([
  ['leaves the list once its flaw was read without a fault', 3, { from: 2, to: 9 }, []],
  ['stays while only other parts of it were read', 3, { from: 4, to: 9 }, ['session-1']],
  ['stays while what is wrong lies beyond what was read', 10, { from: 0, to: 9 }, ['session-1']],
  ['leaves the list once it has its beginning again', 0, { from: 4, to: 9 }, []],
  ['leaves the list once the store shows it again', undefined, { from: 4, to: 9 }, []],
])('a stream %s', (_what, revision, read, left) => {
  damaged.record(damageAt(revision));
  damaged.clear('session-1', read);
  expect(names()).toEqual(left);
});

test('the list is bounded: it shows the newest, and the others are still known', () => {
  for (let index = 0; index < 150; index += 1) damaged.record(damageAt(0, `session-${index}`));
  expect([names().length, names()[0], names().at(-1)]).toEqual([100, 'session-50', 'session-149']);
  expect(damaged.has('session-0')).toBe(true);
});

test('each of very many is told of once, however often all of them are found', () => {
  for (let sweep = 0; sweep < 10; sweep += 1)
    for (let index = 0; index < 1_000; index += 1) damaged.record(damageAt(0, `session-${index}`));
  expect(found.length).toBe(1_000);
});

test('what is remembered is bounded', () => {
  for (let index = 0; index <= 10_000; index += 1) damaged.record(damageAt(0, `session-${index}`));
  expect([damaged.has('session-0'), damaged.has('session-1')]).toEqual([false, true]);
});

test('a stream was found lately for a minute after it was last found, and not once it is whole', () => {
  let now = 0;
  damaged = createDamagedStreams(
    () => undefined,
    () => now,
  );
  const lately = () => damaged.wasFoundRecently('session-1');
  expect(lately()).toBe(false);
  damaged.record(damageAt(0));
  now = 59_999;
  expect(lately()).toBe(true);
  damaged.record(damageAt(0));
  now += 59_999;
  expect(lately()).toBe(true);
  now += 1;
  expect([lately(), damaged.has('session-1')]).toEqual([false, true]);
  damaged.record(damageAt(0));
  damaged.clear('session-1', { from: 0, to: 9 });
  expect(lately()).toBe(false);
});
