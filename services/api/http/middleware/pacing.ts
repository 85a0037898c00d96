import type { Context, Middleware } from 'koa';
import { waitToBegin } from '../../../../shared/lib/concurrency/pacedSteps.ts';
import { clientDisconnectError, onResponseClosed } from '../connection/clientDisconnect.ts';

/** Probes take turns with the accounts, and with the other requests that have none. */
const PROBES = 'health probes';

/**
 * Returns undefined if the event loop has time for the request now, or if the request has had its
 * turn. Otherwise the promise resolves when it is the turn of its account, or of the requests
 * without one.
 */
export function waitForTurn({ path, state }: Context): Promise<void> | undefined {
  if (state['hasBegun'] === true) return undefined;
  state['hasBegun'] = true;
  const account_id = (state['account_id'] as string | undefined) ?? '';
  return waitToBegin(path.startsWith('/health/') ? PROBES : account_id);
}

/**
 * Like waitForTurn, for a request that changes nothing. Rejects when its client disconnects: no limit
 * bounds how many such requests one client can send and abandon.
 */
export function waitWhileConnected(ctx: Context): Promise<void> | undefined {
  const waiting = waitForTurn(ctx);
  if (!waiting) return undefined;
  return new Promise((resolve, reject) => {
    const stopListening = onResponseClosed(ctx.res, () => reject(clientDisconnectError()));
    void waiting.then(stopListening).then(resolve);
  });
}

/** Lets each request that has not waited yet wait before its response: a refused one, for example. */
export const answerInTurn: Middleware = async (ctx, next) => {
  try {
    await next();
  } finally {
    const waiting = waitWhileConnected(ctx);
    if (waiting) await waiting;
  }
};
