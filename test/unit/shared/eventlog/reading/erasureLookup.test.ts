import { expect, test } from '@jest/globals';
import { createErasureLookup } from '../../../../../shared/eventlog/reading/erasureLookup.ts';

/** A log whose reads end when the test says so. */
function pendingReads() {
  const reads: PromiseWithResolvers<[]>[] = [];
  const lookup = createErasureLookup({
    readStream: () => {
      const read = Promise.withResolvers<[]>();
      reads.push(read);
      return read.promise;
    },
  });
  return { lookup, reads };
}

test('all that wait for the end of a stream share one read', async () => {
  const { lookup, reads } = pendingReads();
  const answers = Array.from({ length: 100 }, () => lookup.isErased('session-a'));
  expect(reads.length).toBe(1);
  reads[0]!.resolve([]);
  for (const answer of answers) expect(await answer).toBe(false);
  expect(lookup.isErased('session-a')).toBe(false);
});

test('a read that began before streams are read again is not shared after that', async () => {
  const { lookup, reads } = pendingReads();
  const before = lookup.isErased('session-a');
  lookup.recheckAll();
  const after = lookup.isErased('session-a');
  expect(reads.length).toBe(2);
  for (const { resolve } of reads) resolve([]);
  expect([await before, await after]).toEqual([false, false]);
});
