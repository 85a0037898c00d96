import { APIConnectionError, APIConnectionTimeoutError, APIError } from 'openai/core/error';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { FINISH_REASONS } from './finishReasons.ts';
import { retryAfterMs } from './pooledFetch.ts';

/**
 * Codes and types of errors of OpenAI-compatible servers. Providers quote prompts in their messages
 * and other members, so the log holds only these.
 */
const IDENTIFIERS: ReadonlySet<unknown> = new Set([
  'account_deactivated',
  'api_error',
  'array_above_max_length',
  'authentication_error',
  'billing_hard_limit_reached',
  'billing_not_active',
  'content_filter',
  'content_policy_violation',
  'context_length_exceeded',
  'engine_overloaded',
  'insufficient_quota',
  'integer_above_max_value',
  'internal_server_error',
  'invalid_api_key',
  'invalid_image_format',
  'invalid_json',
  'invalid_json_schema',
  'invalid_organization',
  'invalid_prompt',
  'invalid_request_error',
  'invalid_type',
  'invalid_value',
  'missing_required_parameter',
  'model_not_found',
  'not_found_error',
  'overloaded_error',
  'permission_error',
  'rate_limit_error',
  'rate_limit_exceeded',
  'server_error',
  'string_above_max_length',
  'timeout',
  'tokens_exceeded_error',
  'unknown_parameter',
  'unsupported_parameter',
  'unsupported_value',
]);

/** The members of a request that an error may name. */
const PARAMETER =
  /^(?:max_completion_tokens|max_tokens|messages|model|response_format|stream|stream_options|temperature|tools)(?=$|[.[])/;

/**
 * An error response for the log: its status, and the identifiers among its type, code and parameter
 * that this file lists, such as `400 invalid_request_error unsupported_value temperature`.
 */
function identifiersOf({ status, type, code, param }: APIError): string {
  const parameter = typeof param === 'string' ? PARAMETER.exec(param)?.[0] : undefined;
  const identifiers = [type, code].filter((name) => IDENTIFIERS.has(name));
  return [status, ...new Set(identifiers), parameter]
    .filter((part) => part !== undefined)
    .join(' ');
}

const DEFAULT_RETRY_AFTER_S = 1;
const MAX_RETRY_AFTER_S = 86_400;

/** Describes an error response: what happened, the status, and the reason if known. */
function describeFailure(what: string, { status, code }: APIError): string {
  const reason = FINISH_REASONS.get(code);
  return `The model provider ${what} (${status})${reason === undefined ? '' : `: ${reason}`}.`;
}

function overloadedError(error: APIError, cause: Error): TurnlogError {
  const waitMs = error.headers && retryAfterMs(error.headers, Date.now());
  const seconds = Math.min(
    Math.max(Math.ceil((waitMs ?? DEFAULT_RETRY_AFTER_S * 1000) / 1000), 1),
    MAX_RETRY_AFTER_S,
  );
  return new TurnlogError(
    'model_overloaded',
    describeFailure('takes no more requests now', error),
    {
      retriable: true,
      retryAfterSeconds: seconds,
      cause,
    },
  );
}

function refusedError(error: APIError, cause: Error): TurnlogError {
  const { status = 0 } = error;
  const what =
    status === 401
      ? 'did not accept the configured credentials'
      : status >= 500
        ? 'failed'
        : 'refused the request';
  return new TurnlogError('model_error', describeFailure(what, error), {
    retriable: status >= 500,
    cause,
  });
}

/** undici's errors for a response that is not HTTP. The first is a name: its code is undefined. */
const NOT_HTTP: readonly unknown[] = ['HTTPParserError', 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH'];

/** The code of the network error at the bottom of the chain of causes, such as ECONNREFUSED. */
function networkCode(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { cause, code, name } = error as NodeJS.ErrnoException;
  return networkCode(cause) ?? code ?? (NOT_HTTP.includes(name) ? name : undefined);
}

/** The cause for the log, without any text of a response, which may quote the prompt or keys. */
function causeOf(error: unknown): Error {
  if (error instanceof APIError && error.status !== undefined)
    return new Error(identifiersOf(error));
  const name = error instanceof Error ? error.constructor.name : typeof error;
  return new Error([name, networkCode(error)].filter((part) => part !== undefined).join(' '));
}

/**
 * Maps a failed call of the `openai` package to `model_error`, `model_overloaded` or `model_timeout`.
 * Nothing that the provider wrote is kept except known identifiers.
 */
export function toModelError(error: unknown): TurnlogError {
  if (error instanceof TurnlogError) return error;
  const cause = causeOf(error);
  if (error instanceof APIConnectionTimeoutError) {
    return new TurnlogError('model_timeout', 'The model provider did not answer in time.', {
      retriable: true,
      cause,
    });
  }
  if (error instanceof APIConnectionError) {
    const code = networkCode(error);
    const what =
      code === 'UND_ERR_SOCKET' || code === 'ECONNRESET'
        ? 'closed the connection without an answer'
        : code === 'UND_ERR_HEADERS_OVERFLOW'
          ? 'answered with headers that are too long'
          : NOT_HTTP.includes(code)
            ? 'answered with something that is not HTTP'
            : 'could not be reached';
    const message = `The model provider ${what}${code ? ` (${code})` : ''}.`;
    return new TurnlogError('model_error', message, { retriable: true, cause });
  }
  if (error instanceof APIError && error.status !== undefined) {
    return error.status === 429 || error.status === 503
      ? overloadedError(error, cause)
      : refusedError(error, cause);
  }
  if (error instanceof SyntaxError)
    return new TurnlogError('model_error', "The model provider's answer is not valid JSON.", {
      retriable: true,
      cause,
    });
  return new TurnlogError('model_error', 'The call of the model failed.', { cause });
}
