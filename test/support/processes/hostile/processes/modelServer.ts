/**
 * A chat completions server that keeps nothing of what it is sent, and behaves as the name of the
 * model says: `quick`, `slow` (so many ms: the first argument), `large` (as many characters of
 * output as the input begins with), `dripping` (100,000 deltas of a character), `telling` (a delta
 * every 5 ms, for as long as the slow one takes), `echo` (its input, as the arguments of a tool if it has
 * one), `faulty` (8 MiB errors that quote the provider's key), `calling` (8,000 tool calls at once),
 * `talking` (8 MiB of text), `hinting` (103 without end), and those of oddAnswers.ts: `colliding`, `fields`,
 * `repeating`, `wide`, `named`, `lines`, `indexes` and `bytes`. Prints its base URL.
 */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import type { AddressInfo } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { PROVIDER_SECRET } from '../answers.ts';
import { sendHints } from './hints.ts';
import {
  chunksOfOneByte,
  collidingCalls,
  emptyLines,
  inheritedNames,
  newIndexes,
  oneWordError,
  streamedFields,
  wideText,
} from './oddAnswers.ts';

const HUGE = 8 * 1_024 * 1_024;
const TOOL_CALLS = 8_000;
const slowMs = Number(process.argv[2] ?? 0);

const completion = (message: object, finish_reason = 'stop'): Buffer =>
  Buffer.from(
    JSON.stringify({
      id: 'chatcmpl-hostile',
      object: 'chat.completion',
      created: 1_700_000_000,
      model: 'hostile',
      choices: [
        { index: 0, message: { role: 'assistant', refusal: null, ...message }, finish_reason },
      ],
      usage: { prompt_tokens: 20, completion_tokens: 7, total_tokens: 27 },
    }),
  );

const quick = completion({ content: 'Done.' });
const talking = completion({ content: 'word '.repeat(HUGE / 5) });
const calling = completion(
  {
    content: null,
    tool_calls: Array.from({ length: TOOL_CALLS }, (_, at) => ({
      id: `call_${at}`,
      type: 'function',
      function: { name: 'calculator', arguments: '{"expression":"1+1"}' },
    })),
  },
  'tool_calls',
);
const faulty = Buffer.from(
  JSON.stringify({
    error: { message: `Incorrect API key: ${PROVIDER_SECRET}. ${'x'.repeat(HUGE)}`, type: 'error' },
  }),
);
const FAULTS = [400, 500, 429];

const colliding = collidingCalls();
const named = inheritedNames();
const repeating = oneWordError();
const wide = wideText();

const DELTAS = 100_000;
const deltaEvent = (content: string): string =>
  `data: ${JSON.stringify({
    id: 'chatcmpl-hostile',
    object: 'chat.completion.chunk',
    model: 'hostile',
    choices: [{ index: 0, delta: { content }, finish_reason: null }],
  })}\n\n`;
/** So many bytes are written at once. */
const DRIP_BYTES = 16_384;
let dripping: Buffer | undefined;

/** Streams single characters, as fast as they are read. */
async function drip(response: ServerResponse): Promise<void> {
  dripping ??= Buffer.from(`${deltaEvent('x').repeat(DELTAS)}${END}`);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const closed = new AbortController();
  response.on('close', () => closed.abort());
  for (let at = 0; at < dripping.length; at += DRIP_BYTES)
    if (!response.write(dripping.subarray(at, at + DRIP_BYTES)))
      await once(response, 'drain', { signal: closed.signal });
  response.end();
}

/** Writes as fast as it is read. */
async function writeAll(
  response: ServerResponse,
  chunks: Iterable<string>,
  to: Writable = response,
): Promise<void> {
  const closed = new AbortController();
  response.on('close', () => closed.abort());
  for (const chunk of chunks)
    if (!to.write(chunk)) await once(to, 'drain', { signal: closed.signal });
}

async function sendStream(response: ServerResponse, chunks: Iterable<string>): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  await writeAll(response, chunks);
  response.end(END);
}

/** Sends an answer after 100,000 bytes, each in a separate chunk. */
async function sendBytes(response: ServerResponse, stream = false): Promise<void> {
  response.writeHead(200, { 'content-type': stream ? 'text/event-stream' : 'application/json' });
  response.flushHeaders();
  await writeAll(response, chunksOfOneByte(), response.socket!);
  response.end(stream ? `${deltaEvent('x')}${END}` : quick);
}

interface Message {
  role: string;
  content: string;
}
interface Body {
  model: string;
  stream?: boolean;
  messages: Message[];
  tools?: { function: { name: string } }[];
}

/** The message as the answer, or as the arguments of the first tool. */
function echo({ role, content }: Message, [tool] = [] as NonNullable<Body['tools']>): Buffer {
  if (role === 'tool') return quick;
  if (!tool) return completion({ content });
  const call = { name: tool.function.name, arguments: content };
  const tool_calls = [{ id: 'call_1', type: 'function', function: call }];
  return completion({ content: null, tool_calls }, 'tool_calls');
}

const USAGE = { prompt_tokens: 20, completion_tokens: 7, total_tokens: 27 };
const END = `data: ${JSON.stringify({ choices: [], usage: USAGE })}\n\ndata: [DONE]\n\n`;
const TELL_MS = 5;

/** Streams a word at a time. */
async function tell(response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const until = performance.now() + slowMs;
  while (performance.now() < until && !response.destroyed) {
    response.write(deltaEvent('word '));
    await sleep(TELL_MS);
  }
  response.end(END);
}

let answered = 0;

function send(response: ServerResponse, status: number, body: Buffer): void {
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': body.length });
  response.end(body);
}

async function answer(body: string, response: ServerResponse): Promise<void> {
  const { model, messages, tools, stream } = JSON.parse(body) as Body;
  answered += 1;
  switch (model) {
    case 'slow':
      await sleep(slowMs);
      return send(response, 200, quick);
    case 'large': {
      const length = Number.parseInt(messages.at(-1)!.content, 10);
      return send(response, 200, completion({ content: '\u0001'.repeat(length) }));
    }
    case 'dripping':
      return drip(response);
    case 'echo':
      return send(response, 200, echo(messages.at(-1)!, tools));
    case 'telling':
      return tell(response);
    case 'faulty':
      return send(response, FAULTS[answered % FAULTS.length]!, faulty);
    case 'calling':
      return send(response, 200, calling);
    case 'hinting':
      return sendHints(response);
    case 'talking':
      return send(response, 200, talking);
    case 'colliding':
      return send(response, 200, colliding);
    case 'fields':
      return sendStream(response, streamedFields());
    case 'lines':
      return sendStream(response, emptyLines());
    case 'indexes':
      return sendStream(response, newIndexes());
    case 'bytes':
      return sendBytes(response, stream);
    case 'repeating':
      return send(response, 400, repeating);
    case 'wide':
      return send(response, 200, wide);
    case 'named':
      return send(response, 200, named);
    default:
      return send(response, 200, quick);
  }
}

const server = createServer((request, response) => {
  response.on('error', () => undefined);
  readText(request)
    .then((body) => answer(body, response))
    .catch(() => response.destroy());
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () =>
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1\n`),
);
