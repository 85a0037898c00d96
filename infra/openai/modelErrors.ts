import type * as OpenAi from 'openai';
import { TurnlogError } from '../../shared/errors.ts';
import { retryAfterMs } from './pooledFetch.ts';
import { redact } from './redact.ts';

const DEFAULT_RETRY_AFTER_S = 1;
const LONGEST_RETRY_AFTER_S = 86_400;

const CREDENTIALS = 'The model provider did not accept the configured credentials';

/** The provider's sentence in `{"error":{"message"}}`, or undefined. */
function ownWords(error: OpenAi.APIError, key: string | undefined): string | undefined {
  const message: unknown =
    error.error && 'message' in error.error ? error.error.message : undefined;
  return typeof message === 'string' && message.trim() !== '' ? redact(message, key) : undefined;
}

function overloaded(error: OpenAi.APIError): TurnlogError {
  const wait = error.headers && retryAfterMs(error.headers, Date.now());
  const seconds = Math.min(
    Math.max(Math.ceil((wait ?? DEFAULT_RETRY_AFTER_S * 1000) / 1000), 1),
    LONGEST_RETRY_AFTER_S,
  );
  const message = `The model provider takes no more requests now (${error.status}).`;
  return new TurnlogError('model_overloaded', message, {
    retriable: true,
    retryAfterSeconds: seconds,
    cause: error,
  });
}

function refused(error: OpenAi.APIError, key: string | undefined): TurnlogError {
  const status = error.status ?? 0;
  // A provider's 401 quotes the key.
  const words = status === 401 ? undefined : ownWords(error, key);
  const what =
    status === 401
      ? CREDENTIALS
      : status >= 500
        ? 'The model provider failed'
        : 'The model provider refused the request';
  return new TurnlogError('model_error', `${what} (${status})${words ? `: ${words}` : '.'}`, {
    retriable: status >= 500,
    cause: error,
  });
}

/** The code of the network error at the bottom of the chain of causes, such as ECONNREFUSED. */
function networkCode(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  return networkCode(error.cause) ?? (error as NodeJS.ErrnoException).code;
}

/**
 * What a failed call of the `openai` package means, as `model_error`, `model_overloaded` or
 * `model_timeout`. `key` is the provider's, so that it never shows.
 */
export function modelError(
  error: unknown,
  openai: typeof OpenAi,
  key: string | undefined,
): TurnlogError {
  if (error instanceof TurnlogError) return error;
  if (error instanceof openai.APIConnectionTimeoutError) {
    return new TurnlogError('model_timeout', 'The model provider did not answer in time.', {
      retriable: true,
      cause: error,
    });
  }
  if (error instanceof openai.APIConnectionError) {
    const code = networkCode(error);
    const what =
      code === 'UND_ERR_SOCKET' || code === 'ECONNRESET'
        ? 'closed the connection without an answer'
        : 'could not be reached';
    const message = `The model provider ${what}${code ? ` (${code})` : ''}.`;
    return new TurnlogError('model_error', message, { retriable: true, cause: error });
  }
  if (error instanceof openai.APIError && error.status !== undefined) {
    return error.status === 429 || error.status === 503 ? overloaded(error) : refused(error, key);
  }
  if (error instanceof SyntaxError)
    return new TurnlogError('model_error', "The model provider's answer is not valid JSON.", {
      retriable: true,
      cause: error,
    });
  return new TurnlogError('model_error', 'The call of the model failed.', { cause: error });
}
