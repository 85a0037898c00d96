import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { createAnswerRoom, releaseWhenSent, type Held } from '../../../services/api/answerRoom.ts';
import { LIMITS } from '../../../shared/limits.ts';

const MIB = 1_048_576;
const LONG_MS = 60_000;
const response = (closed = false): ServerResponse =>
  Object.assign(new EventEmitter(), { closed }) as unknown as ServerResponse;
const overloaded = { code: 'overloaded', retriable: true, retryAfterSeconds: expect.any(Number) };

/** Asks for room, and says who got it. */
function asking(room: ReturnType<typeof createAnswerRoom>) {
  const admitted: string[] = [];
  const held = new Map<string, Held>();
  const refused: unknown[] = [];
  async function take(name: string, bytes: number, of: ServerResponse): Promise<void> {
    try {
      held.set(name, await room.take(name[0]!, bytes, of));
      admitted.push(name);
    } catch (error) {
      refused.push(error);
    }
  }
  const ask = (name: string, bytes: number, of = response()) => void take(name, bytes, of);
  return { admitted, held, refused, ask };
}

test('one account holds half of the room at the most, and others have the rest at once', async () => {
  const { ask, admitted, held } = asking(createAnswerRoom(8 * MIB, LONG_MS));
  for (const name of ['a1', 'a2', 'a3', 'b1', 'b2']) ask(name, 2 * MIB);
  await setImmediate();
  expect(admitted).toEqual(['a1', 'a2', 'b1', 'b2']);
  held.get('b1')!.release();
  await setImmediate();
  expect(admitted).toHaveLength(4);
  held.get('a1')!.resize(MIB);
  held.get('a2')!.resize(MIB);
  await setImmediate();
  expect(admitted.at(-1)).toBe('a3');
  for (const name of held.keys()) held.get(name)!.release();
});

test('accounts that wait are admitted in turn, however many of one there are', async () => {
  const room = createAnswerRoom(4 * MIB, LONG_MS);
  const { ask, admitted, held } = asking(room);
  for (const name of ['x1', 'x2', 'y1', 'y2']) ask(name, MIB);
  await setImmediate();
  for (const name of ['a1', 'a2', 'a3', 'a4', 'b1', 'c1']) ask(name, MIB);
  expect(room.isShort(0)).toBe(true);
  await setImmediate();
  for (const name of ['x1', 'x2', 'y1', 'y2', 'a1']) {
    held.get(name)!.release();
    await setImmediate();
  }
  expect(admitted.slice(4)).toEqual(['a1', 'b1', 'c1', 'a2', 'a3']);
});

test('what waits for a lot of room is not passed by what needs less', async () => {
  const { ask, admitted, held } = asking(createAnswerRoom(4 * MIB, LONG_MS));
  for (const name of ['x1', 'y1']) ask(name, 1.5 * MIB);
  await setImmediate();
  ask('a1', 2 * MIB);
  ask('b1', MIB);
  await setImmediate();
  expect(admitted).toEqual(['x1', 'y1']);
  held.get('x1')!.release();
  await setImmediate();
  expect(admitted).toEqual(['x1', 'y1', 'a1']);
  held.get('y1')!.release();
  await setImmediate();
  expect(admitted.at(-1)).toBe('b1');
});

test('who waits too long, leaves, or is one too many, is refused and forgotten', async () => {
  const room = createAnswerRoom(4 * MIB, 2_000);
  const { ask, refused, held, admitted } = asking(room);
  for (const name of ['x1', 'y1']) ask(name, 2 * MIB);
  const leaving = response();
  ask('x2', MIB, leaving);
  leaving.emit('close');
  await setImmediate();
  expect(refused).toEqual([expect.objectContaining(overloaded)]);
  ask('y2', MIB, response(true));
  await setImmediate();
  expect(refused).toHaveLength(2);
  for (let index = 0; index <= LIMITS.http.answersWaiting; index += 1) ask('x3', MIB);
  await setImmediate();
  expect(refused).toHaveLength(3);
  while (room.isShort(0)) await new Promise((resolve) => setTimeout(resolve, 10));
  expect(refused).toHaveLength(3 + LIMITS.http.answersWaiting);
  held.get('x1')!.release();
  ask('x4', 2 * MIB);
  await setImmediate();
  expect(admitted.at(-1)).toBe('x4');
});

test('a small answer never waits, and what is larger than a share takes a share', async () => {
  const room = createAnswerRoom(4 * MIB, LONG_MS);
  const { ask, admitted } = asking(room);
  for (const name of ['a1', 'b1']) ask(name, 100 * MIB);
  ask('a2', LIMITS.http.smallAnswerBytes);
  await setImmediate();
  expect(admitted).toEqual(['a1', 'b1', 'a2']);
  expect(room.tryTake('c', MIB)).toBeUndefined();
});

test('what an answer holds is free once it is sent, and once its client has left', () => {
  const room = createAnswerRoom(4 * MIB);
  const sent = response();
  releaseWhenSent(room.add('a', 2 * MIB), sent);
  expect(room.tryTake('a', MIB)).toBeUndefined();
  sent.emit('close');
  releaseWhenSent(room.add('a', 2 * MIB), response(true));
  expect(room.tryTake('a', MIB)).toBeDefined();
});
