import { expect, test } from '@jest/globals';
import { connectionLimit } from '../../../../services/process/connectionLimit.ts';
import { MIB } from '../../../../shared/lib/units.ts';

const warned: string[] = [];
const logger = { warn: (_fields: object, line?: string) => void warned.push(line ?? '') };
const LARGE = 4_096 * MIB;

test.each([
  ['is kept where the limit of open files is unknown', 10_000, undefined, LARGE, 10_000],
  ['is kept where it fits', 10_000, 12_048, LARGE, 10_000],
  ['leaves a quarter of the files to the process', 10_000, 1_024, LARGE, 768],
  ['leaves it 2,048 files at the most', 100_000, 20_000, LARGE, 17_952],
  ['leaves it 100 files at the least', 10_000, 128, LARGE, 28],
  ['leaves 96 KiB of the heap to each', 10_000, 20_000, 256 * MIB, 2_730],
  ['is what both leave', 10_000, 1_024, 256 * MIB, 768],
])('MAX_CONNECTIONS %s', (...[, wanted, openFiles, heapBytes, connections]) => {
  warned.length = 0;
  expect(connectionLimit(wanted, logger, { openFiles, heapBytes })).toBe(connections);
  expect(warned).toHaveLength(wanted === connections ? 0 : 1);
});

test('the warning names what is too small', () => {
  warned.length = 0;
  connectionLimit(10_000, logger, { openFiles: 1_024, heapBytes: LARGE });
  connectionLimit(10_000, logger, { openFiles: 20_000, heapBytes: 256 * MIB });
  expect(warned).toEqual([
    expect.stringMatching(/from 10000 to 768, because the limit of open files is 1024/),
    expect.stringMatching(/from 10000 to 2730, because the heap has 256 MiB/),
  ]);
});

test.each([
  ['is 10,000', 12_048, LARGE, 10_000, 0],
  ['is lower with little heap, without a warning', 20_000, 256 * MIB, 2_730, 0],
  ['is lower with few open files, with a warning', 1_024, 256 * MIB, 768, 1],
])('the default %s', (...[, openFiles, heapBytes, connections, warnings]) => {
  warned.length = 0;
  expect(connectionLimit(undefined, logger, { openFiles, heapBytes })).toBe(connections);
  expect(warned).toHaveLength(warnings);
});

test('a limit that leaves no connection ends the start', () => {
  const limits = { openFiles: 100, heapBytes: LARGE };
  expect(() => connectionLimit(1, logger, limits)).toThrow(/open files is 100/);
});
