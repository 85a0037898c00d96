import { beforeEach, expect, test } from '@jest/globals';
import { createPositionCheck } from '../../../../../infra/eventstoredb/append/append.ts';
import { toEventPosition } from '../../../../../infra/eventstoredb/read/positions.ts';
import { storeUnavailableError } from '../../../../../shared/lib/errors/turnlogError.ts';

const MIB = 1024 * 1024;

let end: number;
let reads: number;
type Check = (position: ReturnType<typeof toEventPosition>) => Promise<void>;
let check: Check;
beforeEach(() => {
  [end, reads] = [0, 0];
  check = checkOf(true);
});

const checkOf = (requiresLeader: boolean): Check =>
  createPositionCheck({ reportFalsePosition: storeUnavailableError, requiresLeader }, async () => {
    reads += 1;
    if (end < 0) throw new Error('no leader');
    return end === 0 ? undefined : toEventPosition(end);
  });

const appendAt = async (mebibytes: number): Promise<void> => {
  end = Math.max(end, mebibytes * MIB);
  await check(toEventPosition(mebibytes * MIB));
};

test('the log is read once for each 16 MiB that it grows', async () => {
  for (let mebibytes = 100; mebibytes <= 200; mebibytes += 1) await appendAt(mebibytes);
  expect(reads).toBe(6);
});

test('a position beyond the end of the log is rejected, however many are sent', async () => {
  await appendAt(100);
  for (let mebibytes = 117; mebibytes < 300; mebibytes += 16)
    await expect(check(toEventPosition(mebibytes * MIB))).rejects.toMatchObject({
      code: 'store_unavailable',
    });
  await appendAt(101);
});

test('a durable append succeeds where the end of the log can not be read', async () => {
  end = -1;
  await check(toEventPosition(100 * MIB));
  expect(reads).toBe(1);
  end = 10 * MIB;
  await expect(check(toEventPosition(100 * MIB))).rejects.toMatchObject({
    code: 'store_unavailable',
  });
});

test('a position is not compared with the end that a lagging node has', async () => {
  await checkOf(false)(toEventPosition(100 * MIB));
  expect(reads).toBe(0);
});

test('a position that no log has is rejected without a read', async () => {
  await expect(check(toEventPosition(2n ** 63n))).rejects.toMatchObject({
    code: 'store_unavailable',
  });
  expect(reads).toBe(0);
});
