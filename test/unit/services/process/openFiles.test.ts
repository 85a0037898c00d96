import { expect, test } from '@jest/globals';
import { connectionsWithinOpenFiles } from '../../../../services/process/openFiles.ts';

const warned: object[] = [];
const logger = { warn: (line: object) => void warned.push(line) };

test.each([
  ['is kept where the limit of open files is unknown', 10_000, undefined, 10_000],
  ['is kept where it fits', 10_000, 11_024, 10_000],
  ['leaves a quarter of the files to the process', 10_000, 1_024, 768],
  ['leaves it 1,024 files at the most', 100_000, 20_000, 18_976],
  ['leaves it 100 files at the least', 10_000, 128, 28],
])('MAX_CONNECTIONS %s', (_what, wanted, openFiles, connections) => {
  warned.length = 0;
  expect(connectionsWithinOpenFiles(wanted, logger, openFiles)).toBe(connections);
  expect(warned).toHaveLength(wanted === connections ? 0 : 1);
});

test('a limit that leaves no connection ends the start', () => {
  expect(() => connectionsWithinOpenFiles(1, logger, 100)).toThrow(/open files is 100/);
});
