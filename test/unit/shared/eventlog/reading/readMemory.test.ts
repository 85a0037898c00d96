import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { expect, jest, test } from '@jest/globals';
import {
  createReadReservation,
  READ_PAGE_BYTES,
  withReadMemory,
} from '../../../../../shared/eventlog/reading/readMemory.ts';
import { LIMITS } from '../../../../../shared/limits.ts';
import { memoryFor } from '../../../../support/builders/memory.ts';

/** An account may hold two pages while it is alone, and the process holds four. */
function memory() {
  const ledger = memoryFor('sessionReads', 4 * READ_PAGE_BYTES);
  return {
    pages: () => ledger.usage('sessionReads').used / READ_PAGE_BYTES,
    reservation: (onDisconnect?: Parameters<typeof createReadReservation>[2]) =>
      createReadReservation(ledger, 'a', onDisconnect),
  };
}

/** A read that goes on until it is ended. */
function heldRead() {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { read: () => promise, end: resolve };
}

test('the requests of an account hold as many pages as its share, and the others wait', async () => {
  const { pages, reservation } = memory();
  const held = heldRead();
  let begun = 0;
  const reads = Array.from({ length: 20 }, () =>
    reservation()(async () => {
      begun += 1;
      await held.read();
    }),
  );
  await setImmediate();
  expect([begun, pages()]).toEqual([2, 2]);
  held.end();
  await Promise.all(reads);
  expect([begun, pages()]).toEqual([20, 0]);
});

test('reads within a read, and beside it, need no more memory', async () => {
  const { pages, reservation } = memory();
  const [reserveRead, other] = [reservation(), reservation()];
  const held = heldRead();
  const holding = other(held.read);
  const found = await reserveRead(() =>
    Promise.all([
      reserveRead(async () => pages()),
      reserveRead(() => reserveRead(async () => pages())),
    ]),
  );
  expect(found).toEqual([2, 2]);
  expect(pages()).toBe(1);
  held.end();
  await holding;
  expect(pages()).toBe(0);
});

test('a read that fails releases its memory', async () => {
  const { pages, reservation } = memory();
  const failing = reservation()(() => Promise.reject(new Error('failed')));
  await expect(failing).rejects.toThrow('failed');
  expect(pages()).toBe(0);
});

test('a wait ends in time with the documented error, or with the client, and holds nothing', async () => {
  const { pages, reservation } = memory();
  const held = heldRead();
  const holding = [reservation()(held.read), reservation()(held.read)];
  const never = async (): Promise<never> => {
    throw new Error('no memory was free');
  };
  const late = reservation()(never, { until: performance.now() });
  await expect(late).rejects.toMatchObject({ code: 'rate_limited' });
  let leave = (_reason: Error): void => undefined;
  const left = reservation((abandon) => {
    leave = abandon;
    return () => undefined;
  })(never);
  await setImmediate();
  leave(new Error('the client left'));
  await expect(left).rejects.toThrow('the client left');
  const signal = AbortSignal.abort(new Error('stopped'));
  await expect(reservation()(never, { signal })).rejects.toThrow('stopped');
  held.end();
  await Promise.all(holding);
  expect(pages()).toBe(0);
});

test('the waits of a request end together, however late the last one begins', async () => {
  const { reservation } = memory();
  const held = heldRead();
  const holding = [reservation()(held.read), reservation()(held.read)];
  const request = reservation();
  // A clock that stands still could keep a loop of another test in this process running.
  const now = performance.now.bind(performance);
  const clock = jest
    .spyOn(performance, 'now')
    .mockImplementation(() => now() + LIMITS.http.answerWaitMs);
  const late = request(async () => undefined).catch((error: unknown) => error);
  expect(await Promise.race([late, sleep(1_000)])).toMatchObject({ code: 'rate_limited' });
  clock.mockRestore();
  held.end();
  await Promise.all(holding);
});

test('a source without a reservation is read at once', async () => {
  expect(await withReadMemory({}, async () => 'read')).toBe('read');
});
