import { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import type { Context } from 'koa';
import type { RouteContext } from '../../../../../services/api/context.ts';
import { createResponseMemory } from '../../../../../services/api/http/responses/responseMemory.ts';
import {
  readTurnRecord,
  readTurnWithinMemory,
} from '../../../../../services/api/sessions/turnMemory.ts';
import { totalBytesOf } from '../../../../../shared/ports/eventStore.ts';
import { memoryFor } from '../../../../support/builders/memory.ts';
import { largeTurn, sessionWithLargeTurn } from '../../../../support/builders/largeTurn.ts';

const MIB = 1_048_576;

/** An API process with so much memory for responses, and a session. */
function service(calls: number, bytes: number) {
  const { log, source } = sessionWithLargeTurn(calls);
  const memory = memoryFor('answers', bytes);
  const api = { ...source, memory, responseMemory: createResponseMemory(memory, 60_000) };
  const res = Object.assign(new EventEmitter(), { closed: false });
  return {
    api: api as unknown as RouteContext,
    ctx: { res } as unknown as Context,
    used: () => memory.usage('answers').used,
    storedBytes: totalBytesOf(log.slice(1, -2)),
  };
}

test('the response of a large turn is made within memory for its texts', async () => {
  const { api, ctx, used, storedBytes } = service(12, 256 * MIB);
  const responded = await readTurnWithinMemory(api, largeTurn, ctx, async ({ tool_calls }) => {
    await new Promise(setImmediate);
    return { calls: tool_calls.length, bytes: used() };
  });
  expect(responded.calls).toBe(12);
  expect(responded.bytes).toBeGreaterThanOrEqual(4 * storedBytes);
  expect(used()).toBe(0);
});

test('the record of a turn keeps memory for its texts until it is passed on', async () => {
  for (const calls of [12, 0]) {
    const { api, ctx, used, storedBytes } = service(calls, 256 * MIB);
    const { turn, done } = await readTurnRecord(api, largeTurn, ctx);
    expect(turn.rounds.length).toBe(calls === 0 ? 1 : 2);
    expect(used()).toBe(3 * storedBytes);
    done();
    expect(used()).toBe(0);
  }
});

test('large turns are read one after another where memory does not suffice for more', async () => {
  // An account may use 12 MiB of it, and a read counts 6 MiB at most.
  const { api, ctx, used } = service(12, 24 * MIB);
  let reading = 0;
  let most = 0;
  const read = (): Promise<void> =>
    readTurnWithinMemory(api, largeTurn, ctx, async () => {
      most = Math.max(most, (reading += 1));
      await sleep(20);
      reading -= 1;
    });
  await Promise.all(Array.from({ length: 8 }, read));
  expect(most).toBeLessThanOrEqual(2);
  expect(used()).toBe(0);
});
