import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createByteCollector } from '../../../../../shared/lib/memory/byteCollector.ts';

test('a collector has the first bytes of all pieces, and says when there were more', () => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ maxLength: 9_000 }), { maxLength: 8 }),
      fc.nat({ max: 40_000 }),
      (pieces, limit) => {
        const collector = createByteCollector(limit);
        const all = Buffer.concat(pieces);
        const fit = pieces.map((piece) => collector.add(Buffer.from(piece)));
        expect(collector.take()).toEqual(all.subarray(0, limit));
        expect(fit.every(Boolean)).toBe(all.length <= limit);
      },
    ),
  );
});

test('a body that is complete in one piece is not copied, and a larger one owns its memory', () => {
  const whole = Buffer.alloc(100);
  const one = createByteCollector(100);
  one.add(whole);
  expect(one.take()).toBe(whole);
  const several = createByteCollector(1_000_000);
  for (let at = 0; at < 3; at += 1) several.add(Buffer.alloc(30_000));
  const taken = several.take();
  expect([taken.length, taken.buffer.byteLength]).toEqual([90_000, 90_000]);
});

test('a million pieces of one byte take little more memory than their bytes', () => {
  const BYTES = 1_000_000;
  const collector = createByteCollector(BYTES);
  const piece = Buffer.alloc(1);
  const before = process.memoryUsage().heapUsed;
  for (let at = 0; at < BYTES; at += 1) collector.add(piece);
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(20 * BYTES);
  expect(collector.take()).toHaveLength(BYTES);
});
