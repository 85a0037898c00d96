import { EventEmitter } from 'node:events';
import { expect, test } from '@jest/globals';
import type { Context } from 'koa';
import type { RouteContext } from '../../../../../services/api/context.ts';
import { acquireStream } from '../../../../../services/api/sessions/turnSse.ts';
import { createPermitPool } from '../../../../../shared/lib/concurrency/capacity.ts';

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
