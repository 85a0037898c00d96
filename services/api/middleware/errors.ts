import type { Middleware } from 'koa';
import { Rejection } from '../../../shared/domain/rejection.ts';
import { TurnlogError } from '../../../shared/errors.ts';
import type { Logger } from '../../../shared/logger.ts';
import { ERROR_ANSWERS } from '../errors.ts';
import { answerTo } from '../rejections.ts';
import { failureEnvelope, jsonText, sendJson, wantsPretty } from '../envelope.ts';

const INTERNAL = 'Something failed inside the service. Its log has this request id.';

/**
 * What leaves the process: known errors as they are, rejections as their table says, anything else
 * as a generic one.
 */
function publicError(thrown: unknown): TurnlogError {
  const error = (thrown instanceof Rejection && answerTo(thrown)) || thrown;
  if (error instanceof TurnlogError && ERROR_ANSWERS[error.code].status !== 500) return error;
  return new TurnlogError('internal_error', INTERNAL, { cause: error });
}

/** The one place where errors become answers. */
export const answerErrors =
  (logger: Logger): Middleware =>
  async (ctx, next) => {
    const request_id = ctx.state['request_id'] as string;
    let error: TurnlogError;
    try {
      await next();
      if (ctx.status === 405 || ctx.status === 501)
        error = new TurnlogError('method_not_allowed', `${ctx.path} has no method ${ctx.method}.`);
      else if (ctx.status === 404 && !ctx.body)
        error = new TurnlogError('not_found', 'There is nothing at this path.');
      else return;
    } catch (thrown) {
      error = publicError(thrown);
      const { status } = ERROR_ANSWERS[error.code];
      // What a probe is told, and whoever comes while the service starts or stops, stands in the log
      // already, once, where it began.
      const isTold =
        (ctx.path.startsWith('/health/') || ctx.state['unavailable'] === true) && status !== 500;
      if (status >= 500 && !isTold)
        logger[status === 500 ? 'error' : 'warn'](
          {
            err: error.cause ?? error,
            code: error.code,
            request_id,
            method: ctx.method,
            path: ctx.path,
          },
          'a request failed',
        );
    }
    if (error.retryAfterSeconds !== undefined)
      ctx.set('retry-after', String(Math.ceil(error.retryAfterSeconds)));
    sendJson(
      ctx,
      ERROR_ANSWERS[error.code].status,
      jsonText(failureEnvelope(error, request_id), wantsPretty(ctx)),
    );
  };
