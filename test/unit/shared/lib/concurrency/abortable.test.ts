import { getEventListeners } from 'node:events';
import { expect, test } from '@jest/globals';
import { abortable } from '../../../../../shared/lib/concurrency/abortable.ts';

test('what work comes to is the result, and nobody listens to the signal any more', async () => {
  const { signal } = new AbortController();
  expect(await abortable(Promise.resolve(1), signal)).toBe(1);
  await expect(abortable(Promise.reject(new Error('no')), signal)).rejects.toThrow('no');
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

test('work that does not end is not waited for when the signal aborts', async () => {
  const abort = new AbortController();
  const waiting = abortable(new Promise(() => undefined), abort.signal);
  abort.abort(new Error('over'));
  await expect(waiting).rejects.toThrow('over');
});

test('work under a signal that has aborted already is not waited for', async () => {
  const signal = AbortSignal.abort(new Error('over'));
  await expect(abortable(new Promise(() => undefined), signal)).rejects.toThrow('over');
});
