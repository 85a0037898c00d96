import type { Context, Middleware } from 'koa';
import { waitToBegin } from '../../../../shared/lib/concurrency/pacedSteps.ts';
import { markAccountActive } from '../../../../shared/lib/concurrency/yieldToEventLoop.ts';
import { clientDisconnectError, onResponseClosed } from '../connection/clientDisconnect.ts';

/** Probes take turns with the accounts, and with the other requests without an account. */
const PROBES = 'probes';
const PROBED_PATHS: readonly string[] = ['/health/live', '/health/ready', '/metrics'];

/**
 * Returns undefined if the event loop has time for the request now, or if the request has had its
 * turn. Otherwise the promise resolves when it is the turn of its account, or of the requests
 * without one.
 */
export function admitRequest({ path, state }: Context): Promise<void> | undefined {
  if (state['hasBegun'] === true) return undefined;
  state['hasBegun'] = true;
  if (PROBED_PATHS.includes(path)) return waitToBegin(PROBES);
  const account_id = state['account_id'] as string | undefined;
  if (account_id !== undefined) markAccountActive(account_id);
  return waitToBegin(account_id ?? '');
}

/**
 * Like admitRequest, for a request that changes nothing. Rejects when its client disconnects: no limit
 * bounds how many such requests one client can send and abandon.
 */
export function admitWhileConnected(ctx: Context): Promise<void> | undefined {
  const waiting = admitRequest(ctx);
  if (!waiting) return undefined;
  return new Promise((resolve, reject) => {
    const stopListening = onResponseClosed(ctx.res, () => reject(clientDisconnectError()));
    void waiting.then(stopListening).then(resolve);
  });
}

/** Lets each request that has not waited yet wait before its response: a refused one, for example. */
export const paceResponses: Middleware = async (ctx, next) => {
  try {
    await next();
  } finally {
    // A client that disconnects meanwhile does not change what its request is counted and logged as.
    const waiting = admitWhileConnected(ctx)?.catch(() => undefined);
    if (waiting) await waiting;
  }
};
