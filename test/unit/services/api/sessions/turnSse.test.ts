import { EventEmitter } from 'node:events';
import { expect, test } from '@jest/globals';
import type { Context } from 'koa';
import type { RouteContext } from '../../../../../services/api/context.ts';
import { acquireStream, turnSse } from '../../../../../services/api/sessions/turnSse.ts';
import { createPermitPool } from '../../../../../shared/lib/concurrency/capacity.ts';
import { END_OF_OUTPUT } from '../../../../../shared/sessions/turns/turnOutputPosition.ts';

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

test('the large end of a recorded turn is written in slices', async () => {
  const result = { output: '\u0001漢'.repeat(200_000) };
  const turn = { rounds: [], outcome: { result }, deadline: '' };
  const api = {
    clock: { now: Date.now },
    stopping: new AbortController().signal,
    runState: { liveTurns: { find: () => undefined } },
  } as unknown as RouteContext;
  let turns = 0;
  const count = (): void => {
    turns += 1;
    counting = setImmediate(count);
  };
  let counting = setImmediate(count);
  const options = {
    subject: { account_id: 'a', session_id: 's', turn: 1 },
    after: END_OF_OUTPUT,
    first: { turn, done: () => undefined } as never,
  };
  const ctx = { state: {} } as unknown as Context;
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
