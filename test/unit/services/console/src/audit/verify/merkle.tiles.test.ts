import { expect, test } from '@jest/globals';
import {
  pathOfTile,
  tileHashes,
} from '../../../../../../../services/console/src/audit/verify/merkle.ts';
import { vectors } from '../../../../../../support/builders/vectors.ts';

test('tiles have the paths that Go gives them', () => {
  for (const { Level, Index, Width, Path } of vectors.Paths)
    if (typeof Level === 'number' && Level >= 0) expect(pathOfTile(Level, Index, Width)).toBe(Path);
});

test('a partial tile that was removed is read from the full one, and each tile once', async () => {
  const full = Uint8Array.from({ length: 256 * 32 }, (_, at) => Math.floor(at / 32));
  const asked: string[] = [];
  const read = tileHashes(300, async (path) => {
    asked.push(path);
    return path === 'tile/0/001' ? full : undefined;
  });
  expect([...(await read(0, 257))]).toEqual(Array.from({ length: 32 }, () => 1));
  await read(0, 258);
  expect(asked).toEqual(['tile/0/001.p/44', 'tile/0/001']);
  await expect(read(0, 3)).rejects.toThrow('The log does not serve its tile/0/000.');
});
