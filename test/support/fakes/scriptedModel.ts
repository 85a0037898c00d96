import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import type { ChatRequest } from '../../../shared/sessions/turns/chat.ts';
import { streamCompletion, type Pieces } from './scriptedStream.ts';

/**
 * A chat completion. What is left out is made up, the usage too; `usage: null` leaves it out of the
 * answer. It is streamed to whoever asks for a stream.
 */
interface ScriptedAnswer extends Pieces {
  text?: string | null;
  refusal?: string;
  reasoning?: string;
  /** `extra` are further fields of the call. */
  tool_calls?: { id?: string; name: string; arguments: string; extra?: object }[];
  usage?: { prompt_tokens: number; completion_tokens: number; total_tokens: number } | null;
  finish_reason?: string;
  model?: string;
  delay_ms?: number;
}

/** Any answer, byte for byte; a body that is not text is sent as JSON. */
interface ScriptedResponse {
  status: number;
  headers?: Record<string, string>;
  body?: unknown;
}

export type ScriptedFault =
  | 'malformed_json'
  | 'empty_choice'
  | 'no_choices'
  | 'never_answer'
  | 'stall_after_headers'
  | 'stall_in_body'
  | 'reset_before_answer'
  | 'reset_in_body';

/** Whatever else a server may do with a response. */
interface ScriptedConduct {
  respond: (response: ServerResponse) => void;
}

export type Step = ScriptedAnswer | ScriptedResponse | ScriptedConduct | { fault: ScriptedFault };

/**
 * One step for every request, one step each (the last one for the rest), or a function of the
 * request and its number from 0.
 */
export type Script =
  Step | readonly Step[] | ((request: ChatRequest, index: number) => Step | Promise<Step>);

export interface ScriptedModel {
  /** With the `/v1` that clients expect. */
  baseUrl: string;
  /** Every request body, in order of arrival. */
  requests: ChatRequest[];
  /** The same, as the text that came over the wire. */
  bodies: string[];
  headers: IncomingMessage['headers'][];
  /** Resolves once `count` requests have arrived in all. */
  received(count: number): Promise<void>;
  /** Resolves once `count` answers in all have been handed to the network in full. */
  answered(count: number): Promise<void>;
  /** Resolves once `count` answers in all have been cut off by the client, or by a fault. */
  abandoned(count: number): Promise<void>;
  answeredSoFar(): number;
  abandonedSoFar(): number;
  /** Replaces the script, for the requests to come. */
  use(script: Script): void;
  /** The answer to `GET /v1/models`; 404 without one. */
  list(models: object | undefined): void;
  close(): Promise<void>;
}

const words = (value: unknown): number => JSON.stringify(value).split(/\W+/).length;

function completion(request: ChatRequest, answer: ScriptedAnswer, index: number): string {
  const tool_calls = answer.tool_calls?.map((call, at) => ({
    ...call.extra,
    id: call.id ?? `call_${index}_${at}`,
    type: 'function',
    function: { name: call.name, arguments: call.arguments },
  }));
  const content = answer.text ?? null;
  const usage = {
    prompt_tokens: words(request.messages),
    completion_tokens: words(content),
    total_tokens: words(request.messages) + words(content),
  };
  return JSON.stringify({
    id: `chatcmpl-${index}`,
    object: 'chat.completion',
    created: 1_700_000_000,
    model: answer.model ?? `${request.model}-scripted`,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content,
          refusal: answer.refusal ?? null,
          ...(answer.reasoning !== undefined && { reasoning_content: answer.reasoning }),
          ...(tool_calls && { tool_calls }),
        },
        finish_reason: answer.finish_reason ?? (tool_calls ? 'tool_calls' : 'stop'),
      },
    ],
    ...(answer.usage !== null && { usage: answer.usage ?? usage }),
  });
}

function send(
  response: ServerResponse,
  status: number,
  body: string,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    ...headers,
  });
  response.end(body);
}

/**
 * Half an answer whose headers promise a whole one; `then` runs once that half has been handed to
 * the network.
 */
function sendHalf(
  response: ServerResponse,
  body: string,
  then: () => void = () => undefined,
): void {
  response.writeHead(200, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  });
  response.write(body.slice(0, body.length / 2), then);
}

function misbehave(response: ServerResponse, fault: ScriptedFault, body: string): void {
  switch (fault) {
    case 'malformed_json':
      return send(response, 200, body.slice(0, -5));
    case 'empty_choice':
      return send(response, 200, body.replace('"content":"…"', '"content":""'));
    case 'no_choices':
      return send(response, 200, '{"id":"x","object":"chat.completion","choices":[]}');
    case 'never_answer':
      return undefined;
    case 'stall_after_headers':
      response.writeHead(200, {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      });
      return response.flushHeaders();
    case 'stall_in_body':
      return sendHalf(response, body);
    case 'reset_before_answer':
      response.socket?.resetAndDestroy();
      return undefined;
    case 'reset_in_body':
      return sendHalf(response, body, () => response.socket?.destroy());
    default:
      return fault satisfies never;
  }
}

async function perform(
  response: ServerResponse,
  step: Step,
  request: ChatRequest,
  index: number,
): Promise<void> {
  if ('fault' in step)
    return misbehave(response, step.fault, completion(request, { text: '…' }, index));
  if ('respond' in step) return step.respond(response);
  if ('status' in step) {
    const body =
      typeof step.body === 'string'
        ? step.body
        : JSON.stringify(
            step.body ?? { error: { message: `scripted ${step.status}`, type: 'scripted' } },
          );
    return send(response, step.status, body, step.headers);
  }
  if (step.delay_ms) await new Promise((resolve) => setTimeout(resolve, step.delay_ms));
  const body = completion(request, step, index);
  if ((request as { stream?: boolean }).stream === true)
    return streamCompletion(response, body, step);
  return send(response, 200, body);
}

function stepOf(script: Script, request: ChatRequest, index: number): Step | Promise<Step> {
  if (typeof script === 'function') return script(request, index);
  if (!Array.isArray(script)) return script as Step;
  const steps = script as readonly Step[];
  const step = steps[index] ?? steps.at(-1);
  if (!step) throw new Error('the script is empty');
  return step;
}

/** A chat completions server on a free loopback port that does what the script says. */
export async function startScriptedModel(firstScript: Script): Promise<ScriptedModel> {
  let script = firstScript;
  let first = 0;
  let abandoned = 0;
  let answered = 0;
  const requests: ChatRequest[] = [];
  const bodies: string[] = [];
  const headers: IncomingMessage['headers'][] = [];
  const changed = new EventEmitter().setMaxListeners(0);

  let listed: object | undefined;
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method === 'GET')
      return send(response, listed ? 200 : 404, JSON.stringify(listed ?? { error: {} }));
    response.once('close', () => {
      if (response.writableFinished) answered += 1;
      else abandoned += 1;
      changed.emit('change');
    });
    const body = await readText(request);
    const parsed = JSON.parse(body) as ChatRequest;
    const index = requests.push(parsed) - 1;
    bodies.push(body);
    headers.push(request.headers);
    changed.emit('change');
    await perform(response, await stepOf(script, parsed, index - first), parsed, index);
  }

  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) =>
      send(
        response,
        500,
        JSON.stringify({ error: { message: `the script failed: ${String(error)}` } }),
      ),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  const until = async (reached: () => boolean): Promise<void> => {
    while (!reached()) await once(changed, 'change');
  };
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    bodies,
    headers,
    received: (count) => until(() => requests.length >= count),
    answered: (count) => until(() => answered >= count),
    abandoned: (count) => until(() => abandoned >= count),
    answeredSoFar: () => answered,
    abandonedSoFar: () => abandoned,
    list: (models) => void (listed = models),
    use(next) {
      script = next;
      first = requests.length;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
