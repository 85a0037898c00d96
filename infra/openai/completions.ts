import { writeJson } from '../../shared/eventlog/canonicalJson.ts';
import { releaseBuffer } from '../../shared/lib/memory/releaseBuffer.ts';
import type { ChatAnswer } from '../../shared/ports/chatModel.ts';
import type { ChatRequest } from '../../shared/sessions/turns/chat.ts';
import { requestBody } from '../../shared/sessions/turns/requestBody.ts';
import { parseAnswer } from './answers/answer.ts';
import type { OpenProvider } from './openProvider.ts';
import { sendRequest, type ProviderCall } from './providerRequest.ts';

/** A call of a model, and what ends it early. */
type Call = ProviderCall['caller'] & Pick<ProviderCall, 'signal'>;

/** Serializes a request in slices: the library would do so in one step, even for megabytes. */
async function encodeBody(request: object, accountId: string): Promise<Buffer> {
  const pieces: Buffer[] = [];
  await writeJson(request, { accountId, write: (text) => void pieces.push(Buffer.from(text)) });
  if (pieces.length === 1) return pieces[0]!;
  const body = Buffer.concat(pieces);
  pieces.forEach(releaseBuffer);
  return body;
}

async function post(
  provider: OpenProvider,
  request: object,
  { signal, ...caller }: Call,
): Promise<unknown> {
  const body = await encodeBody(request, caller.account_id);
  const completion = { method: 'POST', path: '/chat/completions', body } as const;
  return sendRequest(provider, completion, { caller, signal });
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
    {
      ...requestBody(request),
      stream: true,
      ...(streamOptions && { stream_options: { include_usage: true } }),
    },
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
 * server that does not accept that field. Throws the errors of sendRequest and parseAnswer.
 */
export const requestCompletion = async (
  provider: OpenProvider,
  request: ChatRequest,
  { onDelta, ...call }: Call,
  streamOptions: boolean,
): Promise<ChatAnswer> =>
  onDelta
    ? postForStream(provider, request, { ...call, onDelta }, streamOptions)
    : parseAnswer(await post(provider, requestBody(request), call), request.model);
