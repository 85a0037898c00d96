import { expect, test } from '@jest/globals';
import {
  createDiskWatch,
  parseFreeLevel,
  type DiskSpace,
} from '../../../../shared/storage/diskWatch.ts';

function setUp(space: Record<string, DiskSpace | undefined>, [warn, stop]: [string, string]) {
  const logged: string[] = [];
  const log = (level: string) => (fields: object) =>
    void logged.push(`${level} ${(fields as { folder: string }).folder}`);
  const watch = createDiskWatch({
    folders: Object.keys(space),
    measure: async (folder) => space[folder],
    warnFree: parseFreeLevel(warn),
    stopFree: parseFreeLevel(stop),
    logger: { warn: log('warn'), error: log('error'), info: log('info') } as never,
  });
  return { watch, logged };
}

test('a disk with little space is named in the log and in health, and stops growth when it is full', async () => {
  const space = { '/data': { size: 1_000, free: 500 }, '/keys': { size: 1_000, free: 500 } };
  const { watch, logged } = setUp(space, ['200', '100']);
  await watch.poll();
  expect([watch.health(), watch.isFull(), logged]).toEqual([undefined, false, []]);

  space['/data'].free = 199;
  await watch.poll();
  await watch.poll();
  expect(watch.health()).toEqual({
    state: 'low',
    folders: [{ folder: '/data', free_bytes: 199 }],
  });
  expect([watch.isFull(), logged]).toEqual([false, ['warn /data']]);

  space['/keys'].free = 99;
  await watch.poll();
  expect(watch.health()).toMatchObject({ state: 'full' });
  expect([watch.isFull(), logged.at(-1)]).toEqual([true, 'error /keys']);
  expect(watch.usage()).toEqual({ bytes: { limit: 900, used: 901 } });

  space['/keys'].free = space['/data'].free = 200;
  await watch.poll();
  expect([watch.health(), watch.isFull()]).toEqual([undefined, false]);
  expect(logged.slice(2)).toEqual(['info /data', 'info /keys']);
});

test('what is appended counts threefold until the disk is measured again', async () => {
  const { watch } = setUp({ '/data': { size: 1_000, free: 500 } }, ['200', '100']);
  await watch.poll();
  watch.appended(133);
  expect(watch.isFull()).toBe(false);
  watch.appended(1);
  expect(watch.isFull()).toBe(true);
  await watch.poll();
  expect(watch.isFull()).toBe(false);
});

test('levels may be a share of the disk, or 0 for none', async () => {
  const space = { '/data': { size: 1_000, free: 49 } };
  const share = setUp(space, ['10%', '5%']);
  await share.watch.poll();
  expect(share.watch.isFull()).toBe(true);
  const none = setUp({ '/data': { size: 1_000, free: 0 } }, ['0', '0']);
  await none.watch.poll();
  expect(none.watch.health()).toBeUndefined();
});

test('a folder that can’t be measured keeps its state', async () => {
  const space: Record<string, DiskSpace | undefined> = { '/data': { size: 1_000, free: 0 } };
  const { watch } = setUp(space, ['200', '100']);
  await watch.poll();
  space['/data'] = undefined;
  await watch.poll();
  expect(watch.isFull()).toBe(true);
});

test('of a level in bytes and percent the smaller counts, so that a small disk can be used', async () => {
  const { watch } = setUp({ '/small': { size: 1_000, free: 150 } }, ['2000,20%', '500,10%']);
  await watch.poll();
  expect([watch.health()?.state, watch.isFull()]).toEqual(['low', false]);
});

test('without a level nothing is refused, however much is appended', async () => {
  const { watch } = setUp({ '/data': { size: 1_000, free: 10 } }, ['0', '0']);
  await watch.poll();
  watch.appended(1_000);
  expect([watch.health(), watch.isFull()]).toEqual([undefined, false]);
});
