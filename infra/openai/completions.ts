import type * as OpenAi from 'openai';
import { writeJson } from '../../shared/eventlog/canonicalJson.ts';
import type { ChatAnswer, ModelCaller } from '../../shared/ports/chatModel.ts';
import type { ChatRequest } from '../../shared/sessions/turns/chat.ts';
import { parseAnswer } from './answers/answer.ts';
import { isSuccess } from './answers/responseReaders.ts';
import {
  replyHeader,
  sendAttempt,
  type Connection,
  type ProviderReply,
  type RequestHead,
} from './attempt.ts';
import type { CallOptions } from './pooledFetch.ts';

/** A provider that is in use. */
export interface OpenProvider {
  client: OpenAi.OpenAI;
  connection: Connection;
  /** The time limit of one attempt, in milliseconds. */
  timeoutMs: number;
  /** The library's headers and address of every request for a completion. */
  head?: Promise<RequestHead>;
}

/** A call of a model, and what ends it early. */
type Call = ModelCaller & { signal: AbortSignal };

const COMPLETIONS = '/chat/completions';
const JSON_BODY = { 'content-type': 'application/json' };

async function buildHead(client: OpenAi.OpenAI): Promise<RequestHead> {
  const options = { method: 'post', path: COMPLETIONS, headers: JSON_BODY } as const;
  const { req, url } = await client.buildRequest(options);
  const { origin, pathname, search } = new URL(url);
  const headers = new Headers(req.headers);
  headers.set('accept-encoding', 'identity');
  return { origin, path: pathname + search, method: 'POST', headers: [...headers].flat() };
}

/** Serializes a request in slices: the library would do so in one step, even for megabytes. */
async function encodeBody(request: object, accountId: string): Promise<Buffer> {
  const pieces: Buffer[] = [];
  await writeJson(request, { accountId, write: (text) => void pieces.push(Buffer.from(text)) });
  return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
}

const JSON_MEDIA = /^\s*(?:application\/json|[\w.-]+\/[\w.-]+\+json)\s*(?:;|$)/i;

/** True for a reply whose body is the JSON of a completion, unless the provider lies. */
const isAnswer = (reply: ProviderReply): reply is ProviderReply & { body: string } =>
  isSuccess(reply.status) &&
  typeof reply.body === 'string' &&
  reply.body !== '' &&
  (reply.isStream || JSON_MEDIA.test(replyHeader(reply.headers, 'content-type') ?? ''));

/**
 * Sends a request, and resolves with the parsed body of its answer. The first attempt does not pass
 * through the library, which costs more than the attempt itself. Any other outcome than an answer
 * does: the library repeats the request, or throws.
 */
async function post(provider: OpenProvider, request: object, call: Call): Promise<unknown> {
  const { client, connection, timeoutMs } = provider;
  const { signal, ...caller } = call;
  const body = await encodeBody(request, caller.account_id);
  const head = await (provider.head ??= buildHead(client));
  const attempt = sendAttempt(connection, { ...head, body }, { caller, signal, timeoutMs });
  const reply = await attempt.catch(() => undefined);
  if (reply && isAnswer(reply)) return JSON.parse(reply.body) as unknown;
  const options: CallOptions = { caller, made: [attempt] };
  const fetchOptions = options as object;
  return client.post(COMPLETIONS, { body, headers: JSON_BODY, signal, fetchOptions });
}

type StreamCall = Call & Required<Pick<Call, 'onDelta'>>;

async function postForStream(
  provider: OpenProvider,
  request: ChatRequest,
  { onDelta, onReasoning, ...call }: StreamCall,
  streamOptions: boolean,
): Promise<ChatAnswer> {
  let hasShownText = false;
  const show = (text: string): void => {
    hasShownText = true;
    onDelta(text);
  };
  let hasShownReasoning = false;
  const showReasoning = (text: string): void => {
    hasShownReasoning = true;
    onReasoning?.(text);
  };
  const body = await post(
    provider,
    { ...request, stream: true, ...(streamOptions && { stream_options: { include_usage: true } }) },
    { ...call, onDelta: show, onReasoning: showReasoning },
  );
  const answer = parseAnswer(body, request.model);
  // A provider without streaming has sent the answer in one piece.
  if (!hasShownReasoning && answer.reasoning) onReasoning?.(answer.reasoning);
  if (!hasShownText && answer.content !== null) onDelta(answer.content);
  return answer;
}

/**
 * Requests a completion, as a stream if the call has an `onDelta`. `streamOptions` is false for a
 * server that does not accept that field. Throws the errors of the library, those of parseAnswer,
 * and SyntaxError.
 */
export const requestCompletion = async (
  provider: OpenProvider,
  request: ChatRequest,
  { onDelta, ...call }: Call,
  streamOptions: boolean,
): Promise<ChatAnswer> =>
  onDelta
    ? postForStream(provider, request, { ...call, onDelta }, streamOptions)
    : parseAnswer(await post(provider, request, call), request.model);
