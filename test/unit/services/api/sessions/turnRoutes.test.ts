import { EventEmitter } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import type { Context } from 'koa';
import type { RouteContext } from '../../../../../services/api/context.ts';
import { createResponseMemory } from '../../../../../services/api/http/responses/responseMemory.ts';
import { turnRoutes } from '../../../../../services/api/sessions/turnRoutes.ts';
import { memoryFor } from '../../../../support/builders/memory.ts';
import { largeTurn, sessionWithLargeTurn } from '../../../../support/builders/largeTurn.ts';

interface Service {
  calls: number;
  /** Records the audit entry of a read. */
  record?: () => Promise<void>;
  /** Called right before a response is written. */
  onWrite?: () => void;
  /** Waits for the read models of another process, which have shown the end of the turn or not. */
  untilShown?: (position: string, timeoutMs: number) => Promise<boolean>;
}

/** Requests of one turn in a process with a gigabyte for responses. */
function service({ calls, record = async () => undefined, onWrite, untilShown }: Service) {
  const { source } = sessionWithLargeTurn(calls);
  const memory = memoryFor('answers', 1_073_741_824);
  const stopping = new AbortController();
  const api = {
    ...source,
    readModels: { ...source.readModels, untilShown },
    visibilityWaitMs: 2_000,
    logger: { warn: () => undefined },
    memory,
    responseMemory: createResponseMemory(memory, 60_000),
    stopping: stopping.signal,
    runState: {},
    readAudit: { record },
  } as unknown as RouteContext;
  const { handle } = turnRoutes.find(({ operationId }) => operationId === 'getTurn')!;
  const request = {
    actor: { account_id: largeTurn.account_id },
    params: { sessionId: largeTurn.session_id, turn: '1' },
    query: {},
    body: {},
  };
  const contextOf = (prefer: string, headers: Map<string, string>): Context => {
    const res = Object.assign(new EventEmitter(), { closed: false });
    const query = {
      get pretty() {
        onWrite?.();
        return undefined;
      },
    };
    const set = (name: string, value: string) => void headers.set(name, value);
    return { res, query, get: () => prefer, set } as unknown as Context;
  };
  const begin = (prefer: string) => {
    const headers = new Map<string, string>();
    const ctx = contextOf(prefer, headers);
    return { ctx, headers, answer: handle(api, request as never, ctx) };
  };
  return {
    used: () => memory.usage('answers').used,
    get: async () => begin('').answer,
    begin,
    stop: () => stopping.abort(),
  };
}

test('the response of a large turn is audited and written in slices, within its memory', async () => {
  const usedAtAudit: number[] = [];
  const usedInTurns: number[] = [];
  let counting: NodeJS.Immediate | undefined;
  const { get, used } = service({
    calls: 12,
    async record() {
      usedAtAudit.push(used());
      count();
    },
  });
  const count = (): void => {
    usedInTurns.push(used());
    counting = setImmediate(count);
  };
  const answer = await get();
  clearImmediate(counting);
  const isHeld = (bytes: number): boolean => bytes > 4 * 2_400_000;
  expect(usedAtAudit.map(isHeld)).toEqual([true]);
  // Four turns of the event loop lie between two slices.
  expect(usedInTurns.length).toBeGreaterThan(2_400_000 / 65_536);
  expect(usedInTurns.every(isHeld)).toBe(true);
  expect(used()).toBe(0);
  expect(answer).toHaveProperty('page');
});

test('a few of the clients that have waited for the same thing are answered per turn of the event loop', async () => {
  const recorded = Promise.withResolvers<void>();
  const clients = { reading: 40, now: 0, left: 40 };
  const { get } = service({
    calls: 0,
    async record() {
      clients.reading -= 1;
      await recorded.promise;
    },
    onWrite() {
      const until = performance.now() + 1;
      while (performance.now() < until);
    },
  });
  const answers = Array.from({ length: clients.left }, async () => {
    await get();
    clients.now += 1;
    clients.left -= 1;
  });
  while (clients.reading > 0) await nextTurn();
  recorded.resolve();
  let most = 0;
  while (clients.left > 0) {
    clients.now = 0;
    await nextTurn();
    most = Math.max(most, clients.now);
  }
  await Promise.all(answers);
  // The steps of one turn take two milliseconds, and parts of two turns can lie between two counts.
  expect(most).toBeLessThanOrEqual(4);
});

test('a wait for the read models takes no longer than the request and the service allow, and its memory is counted', async () => {
  let isShown = false;
  const waits: { timeoutMs: number; used: number }[] = [];
  const { begin, get, used } = service({
    calls: 0,
    async untilShown(_, timeoutMs) {
      waits.push({ timeoutMs, used: used() });
      return isShown;
    },
  });
  const visible = async (prefer: string) => {
    const { answer, headers } = begin(prefer);
    await answer;
    return headers.get('x-turnlog-visible');
  };
  await get();
  expect(waits).toEqual([]);
  expect([await visible('wait=0'), await visible('wait=1'), await visible('wait=30')]).toEqual([
    'false',
    'false',
    'false',
  ]);
  const [none, rest, configured] = waits.map(({ timeoutMs }) => timeoutMs);
  expect([none, configured]).toEqual([0, 2_000]);
  expect(rest).toBeGreaterThan(0);
  expect(rest).toBeLessThanOrEqual(1_000);
  for (const wait of waits) expect(wait.used).toBeGreaterThan(0);
  isShown = true;
  expect(await visible('wait=30')).toBeUndefined();
});

test.each(['disconnect', 'stop'])('a %s ends the wait for the read models', async (end) => {
  const waiting = Promise.withResolvers<void>();
  const { begin, stop, used } = service({
    calls: 0,
    untilShown: () => new Promise(() => waiting.resolve()),
  });
  const { ctx, answer, headers } = begin('wait=30');
  await waiting.promise;
  if (end === 'stop') stop();
  else ctx.res.emit('close');
  await answer;
  expect(headers.get('x-turnlog-visible')).toBe('false');
  expect(used()).toBe(0);
});
