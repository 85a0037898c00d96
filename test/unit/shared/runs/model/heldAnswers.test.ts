import { setImmediate } from 'node:timers/promises';
import { beforeEach, expect, test } from '@jest/globals';
import {
  createHeldAnswers,
  type HeldAnswers,
} from '../../../../../shared/runs/model/heldAnswers.ts';

let held: HeldAnswers;
let released: string[];
beforeEach(() => {
  held = createHeldAnswers();
  released = [];
});
const hold = (name: string): void => held.hold(() => void released.push(name));

test('the memory of the answers so far is released once', () => {
  hold('one');
  hold('two');
  held.release();
  expect(released).toEqual(['one', 'two']);
  hold('three');
  held[Symbol.dispose]();
  expect(released).toEqual(['one', 'two', 'three']);
});

test('memory is kept until work on the answers has ended, though the run has', async () => {
  const count = Promise.withResolvers<number>();
  const check = Promise.withResolvers<number>();
  hold('one');
  expect(held.during(count.promise)).toBe(count.promise);
  void held.during(check.promise);
  held.release();
  count.resolve(1);
  await setImmediate();
  expect(released).toEqual([]);
  check.reject(new Error('no'));
  await expect(check.promise).rejects.toThrow('no');
  await setImmediate();
  expect(released).toEqual(['one']);
  hold('two');
  held.release();
  expect(released).toEqual(['one', 'two']);
});
