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

const LARGE = MIB / 2;
/** A response that records whether its connection was cut. */
function cuttable() {
  const made = Object.assign(response(), { destroyed: false });
  return Object.assign(made, { destroy: () => void (made.destroyed = true) });
}

test('what an answer holds is free once it is sent, and once its client has left', async () => {
  const room = createResponseMemory(memoryFor('answers', 4 * MIB));
  const sent = response();
  await room.holdUntilSent('a', MIB, sent);
  await room.holdUntilSent('a', MIB, response());
  expect(room.tryAcquire('a', MIB)).toBeUndefined();
  sent.emit('close');
  await room.holdUntilSent('a', MIB, response(true));
  expect(room.tryAcquire('a', MIB)).toBeDefined();
});

test('what was acquired before a command is held until the answer is sent', async () => {
  const room = createResponseMemory(memoryFor('answers', 4 * MIB));
  const sent = response();
  const permit = await room.acquire('a', MIB, sent);
  await permit.holdUntilSent(LARGE);
  permit.release();
  expect(room.tryAcquire('a', MIB)).toBeDefined();
  expect(room.tryAcquire('a', LARGE + 1)).toBeUndefined();
  sent.emit('close');
  expect(room.tryAcquire('a', LARGE)).toBeDefined();
});

test('an account that has no memory left for an answer starts no command', async () => {
  const room = createResponseMemory(memoryFor('answers', 4 * MIB), 50);
  await room.waitForRoom('a', response());
  const [first] = [response(), response()];
  await room.holdUntilSent('a', MIB, first);
  await room.holdUntilSent('a', MIB, response());
  await expect(room.waitForRoom('a', response())).rejects.toMatchObject({ code: 'rate_limited' });
  await room.waitForRoom('b', response());
  const waiting = room.waitForRoom('a', response());
  first.emit('close');
  await waiting;
});

test('the answer to a change waits for memory of its account, and is sent at any rate', async () => {
  const room = createResponseMemory(memoryFor('answers', 4 * MIB), 50);
  const held = [cuttable(), cuttable()];
  for (const one of held) await room.holdUntilSent('a', MIB, one);
  const waiting = room.holdUntilSent('a', MIB, response());
  await setImmediate();
  expect([room.isInTheWay('a'), room.isInTheWay('b')]).toEqual([true, false]);
  held[1]!.emit('close');
  await waiting;
  expect(held.map(({ destroyed }) => destroyed)).toEqual([false, false]);
  // None is sent in time: the oldest makes room.
  const latest = cuttable();
  await room.holdUntilSent('a', MIB, latest);
  expect([held[0]!.destroyed, latest.destroyed]).toEqual([true, false]);
});

test('answers that wait are in memory: beyond half of a share, they cut older ones at once', async () => {
  const memory = memoryFor('answers', 4 * MIB);
  const room = createResponseMemory(memory, LONG_MS);
  const others = cuttable();
  await room.holdUntilSent('b', LARGE, others);
  const answers = Array.from({ length: 40 }, cuttable);
  for (const one of answers) void room.holdUntilSent('a', LARGE, one);
  await setImmediate();
  expect(answers.filter(({ destroyed }) => destroyed).length).toBeGreaterThan(30);
  expect(answers.at(-1)!.destroyed).toBe(false);
  expect(others.destroyed).toBe(false);
  expect(memory.usage('answers').used).toBeLessThanOrEqual(2 * MIB + LARGE);
  expect(room.tryAcquire('b', LARGE)).toBeDefined();
  for (const one of answers) one.emit('close');
});

test('a share that shrinks costs an account no more of its answers than a new one needs', async () => {
  const room = createResponseMemory(memoryFor('answers', 4 * MIB), 50);
  const held = Array.from({ length: 4 }, cuttable);
  for (const one of held) await room.holdUntilSent('a', LARGE, one);
  await room.holdUntilSent('b', MIB, cuttable());
  await room.holdUntilSent('a', 2 * LIMITS.http.smallAnswerBytes, cuttable());
  expect(held.map(({ destroyed }) => destroyed)).toEqual([true, false, false, false]);
  // The connection of the first one is still closing, and makes no room again.
  await room.holdUntilSent('a', LARGE, cuttable());
  expect(held.map(({ destroyed }) => destroyed)).toEqual([true, true, false, false]);
});

test('the answer to a client that leaves while it waits cuts no other one', async () => {
  const room = createResponseMemory(memoryFor('answers', 4 * MIB), LONG_MS);
  const held = [cuttable(), cuttable()];
  for (const one of held) await room.holdUntilSent('a', MIB, one);
  // From now on, the account has more than its share.
  await room.holdUntilSent('b', LARGE, cuttable());
  const leaving = cuttable();
  const waiting = room.holdUntilSent('a', LARGE, leaving);
  await setImmediate();
  Object.assign(leaving, { closed: true }).emit('close');
  await waiting;
  expect(held.map(({ destroyed }) => destroyed)).toEqual([false, false]);
});

test('an answer that has waited leaves its place to the next one', async () => {
  const room = createResponseMemory(memoryFor('answers', 4 * MIB), LONG_MS);
  const held = [cuttable(), cuttable(), cuttable()];
  for (const one of held.slice(0, 2)) await room.holdUntilSent('a', MIB, one);
  const first = room.holdUntilSent('a', MIB, held[2]!);
  await setImmediate();
  held[0]!.emit('close');
  await first;
  const second = room.holdUntilSent('a', MIB, cuttable());
  await setImmediate();
  expect([room.isScarce(0), held.some(({ destroyed }) => destroyed)]).toEqual([true, false]);
  held[1]!.emit('close');
  await second;
});
