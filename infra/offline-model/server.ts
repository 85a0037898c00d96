import type { IncomingMessage, ServerResponse } from 'node:http';
import { duplexPair, Readable, type Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { sleep } from '../../shared/lib/time/sleep.ts';
import { LIMITS } from '../../shared/limits.ts';
import {
  generateCompletion,
  completionBody,
  completionEvents,
  OFFLINE_MODEL,
  wordsWritten,
} from './completion.ts';
import { parseDirectives } from './directives.ts';
import { AnswerTooLong } from './jsonForSchema.ts';
import { parseRequest, type CompletionRequest } from './request.ts';
import { lastInputOf } from './thought.ts';

/** An import would load Node's own undici: see services/api/http/connection/nodeHttp.ts. */
const { createServer } = process.getBuiltinModule('node:http');

const LONGEST_BODY = LIMITS.offlineModel.bodyBytes;

/** The host name of the server, which no name server resolves (RFC 6761 §6.4). */
export const OFFLINE_HOST = 'offline.invalid';
export const OFFLINE_BASE_URL = `http://${OFFLINE_HOST}/v1`;

interface OfflineModel {
  /** Opens a connection for HTTP/1.1; destroying it ends its requests. */
  connect(): Duplex;
}

/** Waits for a time in milliseconds. Rejects if aborted. */
type Pause = (ms: number, signal: AbortSignal) => Promise<void>;

function sendJson(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  });
  response.end(body);
}

interface ModelError {
  status: number;
  message: string;
  type?: string;
  code?: string | null;
}

function sendError(response: ServerResponse, { status, ...given }: ModelError): void {
  const error = { type: 'invalid_request_error', param: null, code: null, ...given };
  sendJson(response, status, JSON.stringify({ error }));
}

const MODELS = JSON.stringify({
  object: 'list',
  data: [{ id: OFFLINE_MODEL, object: 'model', created: 0, owned_by: 'turnlog' }],
});

/**
 * The body as text; undefined if it is too long. It is always read to the end, because a client
 * does not read a response while it sends.
 */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size <= LONGEST_BODY) chunks.push(chunk);
  }
  return size > LONGEST_BODY ? undefined : Buffer.concat(chunks).toString('utf8');
}

interface Exchange {
  response: ServerResponse;
  pause: Pause;
}

/** What is left of a request once its answer is known: a parsed body may take megabytes. */
interface PlannedAnswer {
  completion: Awaited<ReturnType<typeof generateCompletion>>;
  pauseMs: number | undefined;
  streams: boolean;
  includeUsage: boolean;
}

/** The answer to a request, or the error. */
async function planAnswer(body: string): Promise<PlannedAnswer | ModelError> {
  let request: CompletionRequest;
  try {
    request = parseRequest(body);
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    return { status: 400, message: `The request is not a chat completion: ${problem}.` };
  }
  if (request.model !== OFFLINE_MODEL) {
    const quotedModel = JSON.stringify(request.model);
    return { status: 404, message: `The offline model has no model ${quotedModel}.` };
  }
  const { pauseMs, failWith } = parseDirectives(lastInputOf(request));
  if (failWith !== undefined)
    return {
      status: failWith,
      message: 'The offline model fails, as the input asks for.',
      type: 'server_error',
      code: 'offline_failure',
    };
  try {
    return {
      completion: await generateCompletion(request),
      pauseMs,
      streams: request.stream === true,
      includeUsage: request.stream_options?.include_usage === true,
    };
  } catch (error) {
    if (!(error instanceof AnswerTooLong)) throw error;
    return {
      status: 400,
      message: `The names and constants of the response format have more than ${LIMITS.offlineModel.answerChars} characters.`,
    };
  }
}

async function sendAnswer({ response, pause }: Exchange, planned: PlannedAnswer): Promise<void> {
  const { completion, pauseMs, streams, includeUsage } = planned;
  const closed = new AbortController();
  response.once('close', () => closed.abort());
  const words = wordsWritten(completion);
  if (!streams) {
    if (pauseMs !== undefined) await pause(pauseMs * words, closed.signal);
    return sendJson(response, 200, completionBody(completion));
  }
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  const { wordMs, answerMs } = LIMITS.offlineModel;
  const wordPauseMs = pauseMs ?? Math.min(wordMs, answerMs / words);
  const events = completionEvents(completion, {
    includeUsage,
    beforeWord: () => pause(wordPauseMs, closed.signal),
  });
  return pipeline(Readable.from(events), response);
}

async function handle(request: IncomingMessage, exchange: Exchange): Promise<void> {
  const { response } = exchange;
  const route = `${request.method} ${request.url?.split('?')[0]}`;
  if (route === 'GET /v1/models') return sendJson(response, 200, MODELS);
  if (route !== 'POST /v1/chat/completions')
    return sendError(response, { status: 404, message: `The offline model has no ${route}.` });
  const body = await readBody(request);
  if (body === undefined)
    return sendError(response, {
      status: 413,
      message: `The body is longer than ${LONGEST_BODY} bytes.`,
    });
  const planned = await planAnswer(body);
  // Returned without waiting, so that the body is not kept during the pauses.
  return 'status' in planned ? sendError(response, planned) : sendAnswer(exchange, planned);
}

/**
 * A small chat completions server that answers without a model. It listens on no port: its clients
 * are in this process and speak HTTP to it over a pair of streams.
 */
export function createOfflineModel(pause: Pause = sleep): OfflineModel {
  const server = createServer((request, response) => {
    // Reached only if the client has disconnected.
    handle(request, { response, pause }).catch(() => response.destroy());
  });
  return {
    connect() {
      const [client, accepted] = duplexPair();
      // Only an error of one stream closes the other one.
      client.once('close', () => accepted.destroy());
      server.emit('connection', accepted);
      return client;
    },
  };
}
