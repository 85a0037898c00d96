import type { ModelCaller } from '../../shared/ports/chatModel.ts';
import { isSuccess } from './answers/responseReaders.ts';
import { replyHeader, sendAttempt, type ProviderReply } from './attempt.ts';
import type { OpenProvider } from './openProvider.ts';
import type { CallOptions } from './pooledFetch.ts';

interface ProviderRequest {
  method: 'GET' | 'POST';
  /** Within the provider's base URL, as `/models`. */
  path: string;
  /** JSON. */
  body: Buffer | null;
}

/** A call of a provider, what ends it early, and limits other than the provider's. */
export interface ProviderCall {
  caller: ModelCaller;
  signal: AbortSignal;
  /** The time limit of one attempt, in milliseconds. */
  timeoutMs?: number;
  maxRetries?: number;
}

const JSON_MEDIA = /^\s*(?:application\/json|[\w.-]+\/[\w.-]+\+json)\s*(?:;|$)/i;

/** True for a reply whose body is the requested JSON, unless the provider lies. */
const isAnswer = (reply: ProviderReply): reply is ProviderReply & { body: string } =>
  isSuccess(reply.status) &&
  typeof reply.body === 'string' &&
  reply.body !== '' &&
  (reply.isStream || JSON_MEDIA.test(replyHeader(reply.headers, 'content-type') ?? ''));

/**
 * Sends a request, and resolves with the parsed body of its answer. The first attempt does not pass
 * through the library, which costs more than the attempt itself. Any other outcome than an answer
 * does: the library repeats the request, or throws. Throws its errors, SyntaxError and the abort reason.
 */
export async function sendRequest(
  provider: OpenProvider,
  { method, path, body }: ProviderRequest,
  { caller, signal, ...limits }: ProviderCall,
): Promise<unknown> {
  const { timeoutMs = provider.timeoutMs, maxRetries } = limits;
  const request = { ...provider.head(method, path), body };
  const attempt = sendAttempt(provider.connection, request, { caller, signal, timeoutMs });
  const reply = await attempt.catch(() => undefined);
  if (reply && isAnswer(reply)) return JSON.parse(reply.body) as unknown;
  // A cancelled call must not load the library, which holds up the calls of other accounts.
  signal.throwIfAborted();
  const client = await provider.client();
  const options: CallOptions = { caller, request, made: [attempt] };
  return client.request({
    method: method === 'GET' ? 'get' : 'post',
    path,
    signal,
    timeout: timeoutMs,
    ...(maxRetries !== undefined && { maxRetries }),
    fetchOptions: options as object,
  });
}
