import type { Middleware } from 'koa';
import { TurnlogError, type ErrorCode } from '../../../../shared/lib/errors/turnlogError.ts';
import { errorSummary } from '../../../../shared/lib/errors/errorSummary.ts';
import type { Logger } from '../../../../shared/lib/logger.ts';
import type { ErrorPresenter } from '../errors/errorPresenter.ts';
import { throttledLog } from '../throttledLog.ts';
import { jsonText, sendJson, wantsPretty } from '../responses/envelope.ts';

/**
 * Tells the log of refused requests: of each code at once, and then now and then, with how many
 * there were. Clients may bring them about as often as they like.
 */
function createFailureLog(logger: Logger): (code: ErrorCode, latest: object) => void {
  const tellers = new Map<ErrorCode, (latest: object) => void>();
  return (code, latest) => {
    let tell = tellers.get(code);
    if (!tell) {
      tell = throttledLog((requests, one: object) =>
        logger.warn({ requests, ...one }, 'requests could not be served; the latest of them:'),
      );
      tellers.set(code, tell);
    }
    tell(latest);
  };
}

/** The one place where errors become answers. */
export function answerErrors(logger: Logger, errors: ErrorPresenter): Middleware {
  const tellRefused = createFailureLog(logger);
  return async (ctx, next) => {
    const request_id = ctx.state['request_id'] as string;
    let error: TurnlogError;
    try {
      await next();
      const isOptions = ctx.method === 'OPTIONS' && ctx.status === 200;
      const isRefused = ctx.status === 405 || ctx.status === 501 || isOptions;
      if (isRefused && ctx.response.get('allow') !== '')
        error = new TurnlogError('method_not_allowed', `${ctx.path} has no method ${ctx.method}.`);
      else if (isRefused || (ctx.status === 404 && !ctx.body))
        error = new TurnlogError('not_found', 'There is nothing at this path.');
      else return;
    } catch (thrown) {
      error = errors.toPublicError(thrown);
      const { status, isLoggedWithTurn } = errors.responseOf(error.code);
      // What a probe is told, and whoever comes while the service starts or stops, stands in the log
      // already, once, where it began. Who has left is told nothing.
      const isTold =
        ctx.path.startsWith('/health/') || ctx.state['unavailable'] === true || ctx.res.closed;
      const request = { request_id, method: ctx.method, path: ctx.path };
      if (status === 500)
        logger.error(
          { err: error.cause ?? error, code: error.code, ...request },
          'a request failed',
        );
      else if (status > 500 && !isTold && !isLoggedWithTurn)
        tellRefused(error.code, { ...errorSummary(error), ...request });
    }
    if (error.retryAfterSeconds !== undefined)
      ctx.set('retry-after', String(Math.ceil(error.retryAfterSeconds)));
    if (error.code === 'unauthorized') ctx.set('www-authenticate', 'Bearer');
    sendJson(
      ctx,
      errors.responseOf(error.code).status,
      jsonText(errors.present(error, request_id), wantsPretty(ctx)),
    );
  };
}
