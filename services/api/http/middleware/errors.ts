import type { Middleware } from 'koa';
import { Rejection } from '../../../../shared/domain/rejection.ts';
import { TurnlogError, type ErrorCode } from '../../../../shared/lib/errors/turnlogError.ts';
import { errorSummary } from '../../../../shared/lib/errors/errorSummary.ts';
import type { Logger } from '../../../../shared/lib/logger.ts';
import { ERROR_ANSWERS } from '../errors/errorResponses.ts';
import { nowAndThen } from '../throttledLog.ts';
import { answerTo } from '../errors/rejectionToApiError.ts';
import { failureEnvelope, jsonText, sendJson, wantsPretty } from '../responses/envelope.ts';

const INTERNAL = 'Something failed inside the service. Its log has this request id.';

/**
 * What leaves the process: known errors as they are, rejections as their table says, anything else
 * as a generic one.
 */
export function publicError(thrown: unknown): TurnlogError {
  const error = (thrown instanceof Rejection && answerTo(thrown)) || thrown;
  // A turn that a newer release recorded may have failed with a code of its own.
  const isKnown = error instanceof TurnlogError && error.code in ERROR_ANSWERS;
  if (isKnown && ERROR_ANSWERS[error.code].status !== 500) return error;
  return new TurnlogError('internal_error', INTERNAL, { cause: error });
}

/** A turn that failed so has its line in the log: shared/runs/finishTurn.ts. */
const OF_A_TURN: ReadonlySet<ErrorCode> = new Set([
  'model_error',
  'model_overloaded',
  'model_timeout',
  'tool_error',
]);

/**
 * Tells the log of refused requests: of each code at once, and then now and then, with how many
 * there were. Clients may bring them about as often as they like.
 */
function refusalsTold(logger: Logger): (code: ErrorCode, latest: object) => void {
  const tellers = new Map<ErrorCode, (latest: object) => void>();
  return (code, latest) => {
    let tell = tellers.get(code);
    if (!tell) {
      tell = nowAndThen((requests, one: object) =>
        logger.warn({ requests, ...one }, 'requests could not be served; the latest of them:'),
      );
      tellers.set(code, tell);
    }
    tell(latest);
  };
}

/** The one place where errors become answers. */
export function answerErrors(logger: Logger): Middleware {
  const tellRefused = refusalsTold(logger);
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
      error = publicError(thrown);
      const { status } = ERROR_ANSWERS[error.code];
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
      else if (status > 500 && !isTold && !OF_A_TURN.has(error.code))
        tellRefused(error.code, { ...errorSummary(error), ...request });
    }
    if (error.retryAfterSeconds !== undefined)
      ctx.set('retry-after', String(Math.ceil(error.retryAfterSeconds)));
    if (error.code === 'unauthorized') ctx.set('www-authenticate', 'Bearer');
    sendJson(
      ctx,
      ERROR_ANSWERS[error.code].status,
      jsonText(failureEnvelope(error, request_id), wantsPretty(ctx)),
    );
  };
}
