import { EventEmitter } from 'node:events';
import { expect, test } from '@jest/globals';
import type { Context } from 'koa';
import type { RouteContext } from '../../../../../services/api/context.ts';
import { createResponseMemory } from '../../../../../services/api/http/responses/responseMemory.ts';
import { turnRoutes } from '../../../../../services/api/sessions/turnRoutes.ts';
import { memoryFor } from '../../../../support/builders/memory.ts';
import { largeTurn, sessionWithLargeTurn } from '../../../../support/builders/largeTurn.ts';

test('the response of a large turn is audited and written in slices, within its memory', async () => {
  const { source } = sessionWithLargeTurn(12);
  const memory = memoryFor('answers', 1_073_741_824);
  const used = (): number => memory.usage('answers').used;
  const usedAtAudit: number[] = [];
  const usedInTurns: number[] = [];
  const count = (): void => {
    usedInTurns.push(used());
    counting = setImmediate(count);
  };
  let counting: NodeJS.Immediate | undefined;
  const api = {
    ...source,
    memory,
    responseMemory: createResponseMemory(memory, 60_000),
    stopping: new AbortController().signal,
    runState: {},
    readAudit: {
      record: async () => {
        usedAtAudit.push(used());
        count();
      },
    },
  } as unknown as RouteContext;
  const res = Object.assign(new EventEmitter(), { closed: false });
  const ctx = { res, query: {}, get: () => '', set: () => undefined } as unknown as Context;
  const { handle } = turnRoutes.find(({ operationId }) => operationId === 'getTurn')!;
  const request = {
    actor: { account_id: largeTurn.account_id },
    params: { sessionId: largeTurn.session_id, turn: '1' },
    query: {},
    body: {},
  };
  const answer = await handle(api, request as never, ctx);
  clearImmediate(counting);
  const isHeld = (bytes: number): boolean => bytes > 4 * 2_400_000;
  expect(usedAtAudit.map(isHeld)).toEqual([true]);
  // Four turns of the event loop lie between two slices.
  expect(usedInTurns.length).toBeGreaterThan(2_400_000 / 65_536);
  expect(usedInTurns.every(isHeld)).toBe(true);
  expect(used()).toBe(0);
  expect(answer).toHaveProperty('page');
});
