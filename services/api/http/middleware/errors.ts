import type { Context, Middleware } from 'koa';
import { TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';
import { errorSummary } from '../../../../shared/lib/errors/errorSummary.ts';
import { isTypoOf } from '../../../../shared/lib/typos.ts';
import type { Logger } from '../../../../shared/lib/logger.ts';
import type { ErrorPresenter } from '../errors/errorPresenter.ts';
import type { Route } from '../route.ts';
import { throttledLog } from '../throttledLog.ts';
import { jsonText, sendJson, turnPath, wantsPretty } from '../responses/envelope.ts';

/** Logs failed requests by their kind, throttled: clients can cause them at any rate. */
function createFailureLog(
  write: (fields: object, message: string) => void,
): (kind: string, latest: object) => void {
  const logs = new Map<string, (latest: object) => void>();
  return (kind, latest) => {
    const log =
      logs.get(kind) ??
      throttledLog((requests, request: object) =>
        write({ requests, ...request }, 'requests failed; this is the latest'),
      );
    logs.set(kind, log);
    log(latest);
  };
}

/** Longer paths are no typing mistakes. */
const MAX_CHARACTERS = 200;

const segmentsOf = (path: string): string[] => path.split('/').filter((part) => part !== '');

/** One mistake is allowed per this many letters of a segment. */
const LETTERS_PER_MISTAKE = 3;

/** A segment without the common mistakes: case, singular or plural. */
const loosely = (segment: string): string => segment.toLowerCase().replace(/s$/, '');

const isParameter = (segment: string): boolean => segment.startsWith('{');

type Similarity = (segment: string, part: string) => boolean;

const isSame: Similarity = (segment, part) => loosely(segment) === loosely(part);

/** From the most to the least similar. */
const SIMILARITIES: readonly Similarity[] = [
  isSame,
  (segment, part) =>
    isSame(segment, part) || isTypoOf(segment.toLowerCase(), part, LETTERS_PER_MISTAKE),
];

/** The segments of a path with and without a prefix such as `v1`, `v2` or `api`. */
const candidatesOf = (segments: readonly string[]): (readonly string[])[] => [
  segments,
  ['v1', ...segments],
  segments.slice(1),
  ['v1', ...segments.slice(1)],
];

/**
 * A function that returns the path that a client has probably meant, in one of the `routes`
 * (`/v1/agents/{agentId}`); undefined when none is close. It tolerates a missing or another prefix
 * than `/v1`, additional slashes, another case, singular instead of plural, and wrong letters.
 */
export function createPathSuggestion(
  routes: readonly { path: string }[],
): (path: string) => string | undefined {
  const templates = routes.map(({ path }) => segmentsOf(path));
  return (path) => {
    if (path.length > MAX_CHARACTERS) return undefined;
    const candidates = candidatesOf(segmentsOf(path));
    for (const isSimilar of SIMILARITIES) {
      for (const segments of candidates) {
        const fits = (template: readonly string[]): boolean =>
          template.length === segments.length &&
          template.every((part, at) => isParameter(part) || isSimilar(segments[at]!, part));
        const matchingTemplate = templates.find(fits);
        if (matchingTemplate)
          return `/${matchingTemplate.map((part, at) => (isParameter(part) ? segments[at] : part)).join('/')}`;
      }
    }
    return undefined;
  };
}

const notFoundError = (meant: string | undefined): TurnlogError =>
  new TurnlogError(
    'not_found',
    `There is nothing at this path.${meant === undefined ? '' : ` Did you mean ${meant}?`}`,
  );

const ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/[^\s,/]{1,200}$/;

/** The error for a preflight request (CORS) that no option allows. */
function preflightError(origin: string): TurnlogError {
  const example = ORIGIN.test(origin) ? origin : 'https://app.example.com';
  return new TurnlogError(
    'method_not_allowed',
    `Pages of another origin may call this API only if the option CORS_ORIGINS of the service lists their origin, for example CORS_ORIGINS=${example}.`,
  );
}

const isPreflight = (ctx: Context): boolean =>
  ctx.method === 'OPTIONS' && ctx.get('access-control-request-method') !== '';

/** The operation of a request that a route handled; empty for others. */
const operationOf = ({ state }: Context): string =>
  (state as { route?: Pick<Route, 'operationId'> }).route?.operationId ?? '';

/** Turns every error into a response. `suggestPath` returns the path that a client may have meant. */
export function answerErrors(
  logger: Logger,
  errors: ErrorPresenter,
  suggestPath: (path: string) => string | undefined = () => undefined,
): Middleware {
  const logFailure = createFailureLog((...line) => logger.warn(...line));
  const logDefect = createFailureLog((...line) => logger.error(...line));
  return async (ctx, next) => {
    const request_id = ctx.state['request_id'] as string;
    let error: TurnlogError;
    try {
      await next();
      const isOptions = ctx.method === 'OPTIONS' && ctx.status === 200;
      const isRefused = ctx.status === 405 || ctx.status === 501 || isOptions;
      if (isRefused && isPreflight(ctx)) {
        error = preflightError(ctx.get('origin'));
        logFailure(error.code, { ...errorSummary(error), request_id, path: ctx.path });
      } else if (isRefused && ctx.response.get('allow') !== '')
        error = new TurnlogError('method_not_allowed', `${ctx.path} has no method ${ctx.method}.`);
      else if (isRefused || (ctx.status === 404 && !ctx.body))
        error = notFoundError(suggestPath(ctx.path));
      else return;
    } catch (thrown) {
      error = errors.toPublicError(thrown);
      const { status, isLoggedWithTurn } = errors.responseOf(error.code);
      // Probes, and requests while the service starts or stops, fail for a reason that is already in
      // the log. A disconnected client gets no response.
      const needsNoLog =
        ctx.path.startsWith('/health/') || ctx.state['unavailable'] === true || ctx.res.closed;
      const request = { request_id, method: ctx.method, path: ctx.path };
      // With the stack, and by the route, because routes fail for different reasons.
      if (status === 500)
        logDefect(`${error.code} ${operationOf(ctx)}`, {
          err: error.cause ?? error,
          code: error.code,
          ...request,
        });
      else if (status > 500 && !needsNoLog && !(isLoggedWithTurn && error.turn))
        logFailure(error.code, { ...errorSummary(error), ...request });
    }
    ctx.state['code'] = error.code;
    if (error.retryAfterSeconds !== undefined)
      ctx.set('retry-after', String(Math.ceil(error.retryAfterSeconds)));
    if (error.turn) ctx.set('location', turnPath(error.turn));
    if (error.code === 'unauthorized') ctx.set('www-authenticate', 'Bearer');
    sendJson(
      ctx,
      errors.responseOf(error.code).status,
      jsonText(errors.present(error, request_id), wantsPretty(ctx)),
    );
  };
}
