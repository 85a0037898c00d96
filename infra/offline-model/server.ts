import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { LIMITS } from '../../shared/limits.ts';
import { complete, completionBody, completionEvents, OFFLINE_MODEL } from './completion.ts';
import { parseRequest, type CompletionRequest } from './request.ts';

const LONGEST_BODY = LIMITS.offlineModel.bodyBytes;

export interface OfflineModel {
  /** The base URL, including the `/v1` that clients expect. */
  baseUrl: string;
  close(): Promise<void>;
}

function sendJson(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  });
  response.end(body);
}

function sendError(response: ServerResponse, status: number, message: string): void {
  const error = { message, type: 'invalid_request_error', param: null, code: null };
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

async function answer(response: ServerResponse, request: CompletionRequest): Promise<void> {
  const completion = complete(request);
  if (!request.stream) return sendJson(response, 200, completionBody(completion));
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  const events = completionEvents(completion, request.stream_options?.include_usage === true);
  return pipeline(Readable.from(events), response);
}

async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const route = `${request.method} ${request.url?.split('?')[0]}`;
  if (route === 'GET /v1/models') return sendJson(response, 200, MODELS);
  if (route !== 'POST /v1/chat/completions')
    return sendError(response, 404, `The offline model has no ${route}.`);
  const body = await readBody(request);
  if (body === undefined)
    return sendError(response, 413, `The body is longer than ${LONGEST_BODY} bytes.`);
  let parsed: CompletionRequest;
  try {
    parsed = parseRequest(body);
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    return sendError(response, 400, `The request is not a chat completion: ${problem}.`);
  }
  const quotedModel = JSON.stringify(parsed.model);
  if (parsed.model !== OFFLINE_MODEL)
    return sendError(response, 404, `The offline model has no model ${quotedModel}.`);
  return answer(response, parsed);
}

async function stop(server: Server): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  server.closeAllConnections();
  await closed;
}

/**
 * Starts a small chat completions server on a free loopback port, which answers without a model. It
 * does not keep the process alive.
 */
export async function startOfflineModel(): Promise<OfflineModel> {
  const server = createServer((request, response) => {
    // Reached only if the client has disconnected.
    handle(request, response).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  server.unref();
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    close: () => stop(server),
  };
}
