import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { createResponseMemory } from '../../../../../../services/api/http/responses/responseMemory.ts';
import { LIMITS } from '../../../../../../shared/limits.ts';
import type { Permit } from '../../../../../../shared/lib/concurrency/capacity.ts';
import { memoryFor } from '../../../../../support/builders/memory.ts';

const MIB = 1_048_576;
const LONG_MS = 60_000;
const response = (closed = false): ServerResponse =>
  Object.assign(new EventEmitter(), { closed }) as unknown as ServerResponse;
const refusal = { retriable: true, retryAfterSeconds: expect.any(Number) };

/** Asks for room, and says who got it. */
function asking(room: ReturnType<typeof createResponseMemory>) {
  const admitted: string[] = [];
  const held = new Map<string, Permit>();
  const refused: unknown[] = [];
  async function take(name: string, bytes: number, of: ServerResponse): Promise<void> {
    try {
      held.set(name, await room.acquire(name[0]!, bytes, of));
      admitted.push(name);
    } catch (error) {
      refused.push(error);
    }
  }
  const ask = (name: string, bytes: number, of = response()) => void take(name, bytes, of);
  return { admitted, held, refused, ask };
}

test('one account holds half of the room at the most, and others have the rest in turn', async () => {
  const { ask, admitted, held } = asking(
    createResponseMemory(memoryFor('answers', 8 * MIB), LONG_MS),
  );
  for (const name of ['a1', 'a2', 'a3', 'b1']) ask(name, 2 * MIB);
  ask('c1', MIB);
  await setImmediate();
  expect(admitted).toEqual(['a1', 'a2', 'b1', 'c1']);
  held.get('b1')!.release();
  await setImmediate();
  expect(admitted).toHaveLength(4);
  held.get('a1')!.resize(MIB);
  held.get('a2')!.resize(0);
  await setImmediate();
  expect(admitted.at(-1)).toBe('a3');
});

test('who waits too long, or leaves, is refused and forgotten', async () => {
  const room = createResponseMemory(memoryFor('answers', 8 * MIB), 2_000);
  const { ask, refused, held, admitted } = asking(room);
  for (const name of ['x1', 'x2', 'y1']) ask(name, 2 * MIB);
  const leaving = response();
  ask('x3', MIB, leaving);
  ask('z1', 2 * MIB, response(true));
  await setImmediate();
  expect(refused).toEqual([expect.objectContaining({ code: 'overloaded' })]);
  leaving.emit('close');
  await setImmediate();
  expect(refused).toHaveLength(2);
  expect(leaving.listenerCount('close')).toBe(0);
  expect(room.isScarce(0)).toBe(false);
  ask('x4', MIB);
  ask('z2', 2 * MIB);
  while (room.isScarce(0)) await new Promise((resolve) => setTimeout(resolve, 10));
  expect(refused.slice(2)).toEqual([
    expect.objectContaining({ ...refusal, code: 'rate_limited' }),
    expect.objectContaining({ ...refusal, code: 'overloaded' }),
  ]);
  held.get('x1')!.release();
  ask('z3', 2 * MIB);
  await setImmediate();
  expect(admitted.at(-1)).toBe('z3');
});

test('a small answer never waits', async () => {
  const room = createResponseMemory(memoryFor('answers', 4 * MIB), LONG_MS);
  const { ask, admitted } = asking(room);
  for (const name of ['a1', 'a2', 'b1']) ask(name, MIB);
  ask('a3', LIMITS.http.smallAnswerBytes);
  await setImmediate();
  expect(admitted).toEqual(['a1', 'a2', 'b1', 'a3']);
  expect(room.tryAcquire('c', MIB)).toBeUndefined();
});

test('what an answer holds is free once it is sent, and once its client has left', () => {
  const room = createResponseMemory(memoryFor('answers', 4 * MIB));
  const sent = response();
  room.holdUntilSent('a', 2 * MIB, sent);
  expect(room.tryAcquire('a', MIB)).toBeUndefined();
  sent.emit('close');
  room.holdUntilSent('a', 2 * MIB, response(true));
  expect(room.tryAcquire('a', MIB)).toBeDefined();
});
