import { EventEmitter } from 'node:events';
import { expect, test } from '@jest/globals';
import type { Context } from 'koa';
import { createResponseMemory } from '../../../../../services/api/http/responses/responseMemory.ts';
import type { RouteContext } from '../../../../../services/api/context.ts';
import type { SseEvent } from '../../../../../services/api/http/responses/sse.ts';
import { acquireStream, turnSse } from '../../../../../services/api/sessions/turnSse.ts';
import { createPermitPool } from '../../../../../shared/lib/concurrency/capacity.ts';
import { createLiveTurns } from '../../../../../shared/runs/live/liveTurns.ts';
import { MIB } from '../../../../../shared/lib/units.ts';
import { isFreed } from '../../../../support/jest/garbage.ts';
import { memoryFor } from '../../../../support/builders/memory.ts';
import {
  END_OF_OUTPUT,
  START_OF_OUTPUT,
} from '../../../../../shared/sessions/turns/turnOutputPosition.ts';

test('an account has its share of the streams, and gives a place back when its client leaves', () => {
  const streams = createPermitPool('test', { permits: 4, bytes: Infinity });
  const open = (account: string): EventEmitter => {
    const res = Object.assign(new EventEmitter(), { closed: false });
    acquireStream({ openStreams: streams } as RouteContext, account, { res } as unknown as Context);
    return res;
  };
  const first = open('one');
  open('one');
  expect(() => open('one')).toThrow(expect.objectContaining({ code: 'rate_limited' }));
  first.emit('close');
  expect(streams.activeCount()).toBe(1);
  open('one');
  open('other');
});

type Response = EventEmitter & { closed: boolean };

const openResponse = (): Response => Object.assign(new EventEmitter(), { closed: false });
const contextOf = (res: EventEmitter) => ({ res, state: {} }) as unknown as Context;
const subject = { account_id: 'a', session_id: 's', turn: 1 };

/** A process that streams turns, whose erased streams and responses' memory a test can see. */
function service(liveTurns: object = { find: () => undefined }) {
  const memory = memoryFor('answers', 64 * MIB);
  const erased = new Set<string>();
  const api = {
    clock: { now: Date.now },
    stopping: new AbortController().signal,
    store: { keys: { isErased: (stream: string) => erased.has(stream) } },
    runState: { liveTurns },
    responseMemory: createResponseMemory(memory, 60_000),
    errors: {
      toPublicError: (error: unknown) => error,
      present: ({ code }: { code: string }) => ({ code }),
    },
  } as unknown as RouteContext;
  return { api, erased, used: () => memory.usage('answers').used };
}

test('the large end of a recorded turn is written in slices', async () => {
  const result = { output: '\u0001漢'.repeat(200_000) };
  const turn = { rounds: [], outcome: { result }, deadline: '' };
  const { api } = service();
  let turns = 0;
  const count = (): void => {
    turns += 1;
    counting = setImmediate(count);
  };
  let counting = setImmediate(count);
  const options = {
    subject: { account_id: 'a', session_id: 's', turn: 1 },
    after: END_OF_OUTPUT,
    reasoning: true,
    first: { turn, stream: 'session-s', done: () => undefined } as never,
  };
  const ctx = contextOf(openResponse());
  const events: unknown[] = [];
  for await (const event of turnSse(api, options, ctx, new AbortController().signal))
    events.push(event);
  clearImmediate(counting);
  const data = JSON.stringify({ success: true, data: result, status: 200 });
  expect(events).toEqual([{ id: '1-end', event: 'turn.completed', data }]);
  // Four turns of the event loop lie between two slices.
  expect(turns).toBeGreaterThan(data.length / 65_536);
  expect(turns).toBeLessThan((8 * data.length) / 65_536);
});

/** The events of a stream, which the test takes one by one. */
const stream = (api: RouteContext, res: EventEmitter, options: object) =>
  turnSse(
    api,
    { subject, after: START_OF_OUTPUT, reasoning: true, ...options },
    contextOf(res),
    new AbortController().signal,
  );

async function readAll(events: AsyncIterable<SseEvent>): Promise<string[]> {
  const names: string[] = [];
  for await (const { event, data } of events)
    names.push(event === 'error' ? (JSON.parse(data) as { code: string }).code : event);
  return names;
}

test.each([
  [100_000, []],
  [100, ['released']],
])(
  'the memory of a recorded turn is held until an end of %d characters is sent',
  async (...row) => {
    const [length, atEnd] = row;
    const { api } = service();
    const released: string[] = [];
    const turn = { rounds: [], outcome: { result: { output: 'x'.repeat(length) } }, deadline: '' };
    const first = { turn, stream: 'session-s', done: () => released.push('released') };
    const res = openResponse();
    expect(await readAll(stream(api, res, { first }))).toEqual(['turn.completed']);
    expect(released).toEqual(atEnd);
    res.emit('close');
    expect(released).toEqual(['released']);
  },
);

test('a stream that has given its end keeps no record in memory, however slow the client is', async () => {
  const { api } = service();
  const begin = () => {
    const turn = { rounds: [], outcome: { result: { output: 'x' } }, deadline: '' };
    const first = { turn, stream: 'session-s', done: () => undefined };
    const events = stream(api, openResponse(), { first });
    return { events, turn: new WeakRef(turn) };
  };
  const { events, turn } = begin();
  expect((await events.next()).value).toMatchObject({ event: 'turn.completed' });
  expect(await events.next()).toMatchObject({ done: true });
  expect(await isFreed(turn)).toBe(true);
  await events.return(undefined);
});

test('the result of a live turn is counted once until all of its followers have it', async () => {
  const liveTurns = createLiveTurns();
  const { api, used } = service(liveTurns);
  const publisher = liveTurns.begin(subject, true);
  publisher.publishText(1, 'Hello.');
  const result = { output: 'x'.repeat(100_000) };
  const own = { awaitOwnOutcome: async () => ({ result }) };
  const responses = [openResponse(), openResponse(), openResponse()];
  const streams = responses.map((res) => readAll(stream(api, res, own)));
  await new Promise(setImmediate);
  publisher.publishEnd();
  const ends = await Promise.all(streams);
  expect(ends.map((names) => names.at(-1))).toEqual(Array(3).fill('turn.completed'));
  const held = used();
  expect(held).toBeGreaterThan(3 * 100_000);
  expect(held).toBeLessThan(3 * 101_000);
  for (const [closed, remaining] of [held, held, 0].entries()) {
    Object.assign(responses[closed]!, { closed: true }).emit('close');
    expect(used()).toBe(remaining);
  }
});

test.each([
  ['session-s', 'session-s', 'session_erased'],
  ['session-origin', 'session-s', 'session_erased'],
  ['session-origin', 'session-origin', 'origin_erased'],
])('texts of a turn in %s are not sent after the erasure of %s', async (...row) => {
  const [recordedIn, erasedStream, code] = row;
  const { api, erased } = service();
  const rounds = [{ reasoning: '', text: 'x'.repeat(20_000), calls: [] }];
  const turn = { rounds, outcome: { result: { output: 'x' } }, deadline: '' };
  const first = { turn, stream: recordedIn, done: () => undefined };
  const events = stream(api, openResponse(), { first });
  expect((await events.next()).value).toMatchObject({ event: 'output.delta' });
  erased.add(erasedStream);
  expect(await readAll(events)).toEqual([code]);
});
