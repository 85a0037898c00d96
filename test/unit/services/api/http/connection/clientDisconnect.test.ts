import { EventEmitter } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { expect, jest, test } from '@jest/globals';
import type { Context } from 'koa';
import { createResponseMemory } from '../../../../../../services/api/http/responses/responseMemory.ts';
import {
  clientDisconnectError,
  onResponseClosed,
} from '../../../../../../services/api/http/connection/clientDisconnect.ts';
import type { RouteContext } from '../../../../../../services/api/context.ts';
import { destroyOnError } from '../../../../../../services/api/http/connection/destroyOnError.ts';
import { sessionsFeature } from '../../../../../../services/api/sessions/routes.ts';
import { sendExport, setExportType } from '../../../../../../services/api/exports/send.ts';
import { unauthorizedError } from '../../../../../../shared/accounts/authenticate.ts';
import { LIMITS } from '../../../../../../shared/limits.ts';
import { shutdownError } from '../../../../../../shared/runs/queueing/runsInFlight.ts';
import type { Logger } from '../../../../../../shared/lib/logger.ts';
import { createPermitPool } from '../../../../../../shared/lib/concurrency/capacity.ts';
import { memoryKeys } from '../../../../../support/fakes/memoryKeys.ts';
import { memoryFor } from '../../../../../support/builders/memory.ts';

const actor = { account_id: 'acct_1', key_id: 'key_1', request_id: 'request_1' };

/** A client, and what it does when it leaves. */
function client(): { ctx: Context; leave: () => void } {
  const res = Object.assign(new EventEmitter(), { closed: false });
  const leave = (): void => {
    res.closed = true;
    res.emit('close');
  };
  return { ctx: { res } as unknown as Context, leave };
}

/** The rows of an API key. */
const rowsWith = (key: { revoked_at: string | null }) =>
  ({
    findApiKey: async () => ({ ...key, expires_at: null }),
  }) as unknown as RouteContext['cachedRows'];

/** What goes on until nobody waits for it any more. */
const untilLeft = (signal: AbortSignal | undefined): Promise<never> =>
  new Promise((_resolve, reject) => {
    signal?.addEventListener('abort', () => reject(signal.reason as Error));
  });

test('a search for words ends when its client leaves', async () => {
  const { ctx, leave } = client();
  const progress = { generation: 1, ended: null, indexed: null, unindexed_from: null };
  const api = {
    store: { keys: memoryKeys().keys },
    readModels: {
      indexProgress: async () => progress,
      listSessions: (_account: string, _page: object, signal?: AbortSignal) => untilLeft(signal),
    },
  } as unknown as RouteContext;
  const { handle } = sessionsFeature.routes.find(
    ({ operationId }) => operationId === 'listSessions',
  )!;
  const acquireBuffer = (): Promise<void> => Promise.resolve();
  const asked = { actor, params: {}, query: { q: 'word' }, body: {}, acquireBuffer };
  const searching = handle(api, asked, ctx);
  await setImmediate();
  leave();
  await expect(searching).rejects.toMatchObject({
    message: expect.stringContaining('disconnected'),
  });
});

test.each([
  ['an answer whose client has left before it breaks off is not warned of', true, 0],
  ['an answer that breaks off is warned of, and cut', false, 1],
])('%s', async (_name, leaves, times) => {
  const { ctx, leave } = client();
  const [warn, destroy] = [jest.fn(), jest.fn()];
  Object.assign(ctx, { state: { request_id: 'request_1' } });
  Object.assign(ctx.res, { destroy });
  async function* pieces(): AsyncGenerator<Buffer, void> {
    yield Buffer.from('second');
    if (leaves) leave();
    throw clientDisconnectError();
  }
  const first = [Buffer.from('first')];
  const logger = { warn } as unknown as Logger;
  const sent: string[] = [];
  for await (const piece of destroyOnError(first, pieces(), logger, ctx)) sent.push(String(piece));
  expect(sent).toEqual(['first', 'second']);
  expect(warn).toHaveBeenCalledTimes(times);
  expect(destroy).toHaveBeenCalledTimes(times);
});

test('an export whose client leaves before there is anything to send ends, and holds nothing', async () => {
  const { ctx, leave } = client();
  const openStreams = createPermitPool('test', { permits: 4, bytes: Infinity });
  const responseMemory = createResponseMemory(memoryFor('answers', 4 * LIMITS.export.bytes));
  responseMemory.tryAcquire('acct_1', LIMITS.export.bytes);
  const api = { openStreams, responseMemory } as unknown as RouteContext;
  const audited = { action: 'export', subject: 'account-acct_1' } as const;
  const exporting = { api, actor, ctx, audited, setHeaders: setExportType };
  const sending = sendExport(exporting, untilLeft);
  await setImmediate();
  expect(responseMemory.tryAcquire('acct_1', LIMITS.export.bytes)).toBeUndefined();
  leave();
  await expect(sending).rejects.toMatchObject({ message: expect.stringContaining('disconnected') });
  expect(openStreams.activeCount()).toBe(0);
  expect(responseMemory.tryAcquire('acct_1', LIMITS.export.bytes)).toBeDefined();
});

test.each<[string, Partial<RouteContext>, Error]>([
  ['its key is revoked', { cachedRows: rowsWith({ revoked_at: '2026' }) }, unauthorizedError()],
  ['the service stops', { stopping: AbortSignal.abort() }, shutdownError()],
])('an export ends when %s', async (_name, change, error) => {
  const api = {
    openStreams: createPermitPool('test', { permits: 4, bytes: Infinity }),
    responseMemory: createResponseMemory(memoryFor('answers', 4 * LIMITS.export.bytes)),
    cachedRows: rowsWith({ revoked_at: null }),
    clock: Date,
    ...change,
  } as unknown as RouteContext;
  async function* chunks(): AsyncGenerator<Buffer, void> {
    yield Buffer.from('first');
  }
  const audited = { action: 'export', subject: 'account-acct_1' } as const;
  const exporting = { api, actor, ctx: client().ctx, setHeaders: setExportType };
  const sending = sendExport(exporting, async () => ({ audited, chunks: chunks() }));
  await expect(sending).rejects.toThrow(error);
});

test('all listeners of a response share one listener for its end, are called once, and can be removed', () => {
  const { ctx, leave } = client();
  const listeners = Array.from({ length: 12 }, () => jest.fn());
  const removals = listeners.map((listener) => onResponseClosed(ctx.res, listener));
  expect(ctx.res.listenerCount('close')).toBe(1);
  removals[3]!();
  leave();
  const late = jest.fn();
  onResponseClosed(ctx.res, late);
  expect(late).toHaveBeenCalledTimes(1);
  expect(listeners.map((listener) => listener.mock.calls.length)).toEqual(
    listeners.map((_listener, at) => (at === 3 ? 0 : 1)),
  );
});
