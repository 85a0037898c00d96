import { connect } from 'node:net';
import type { Reply } from './service.ts';

const TIMEOUT_MS = 30_000;

interface Body {
  body: Buffer;
  rest: Buffer;
}

/** Takes a body in chunks off the front; undefined when it is not complete. */
function takeChunks(bytes: Buffer): Body | undefined {
  const chunks: Buffer[] = [];
  for (let at = 0; ;) {
    const end = bytes.indexOf('\r\n', at);
    if (end < 0) return undefined;
    const size = Number.parseInt(bytes.toString('latin1', at, end), 16);
    const next = end + 2 + size + 2;
    if (bytes.length < next) return undefined;
    if (size === 0) return { body: Buffer.concat(chunks), rest: bytes.subarray(next) };
    chunks.push(bytes.subarray(end + 2, end + 2 + size));
    at = next;
  }
}

function takeBody(bytes: Buffer, headers: Headers): Body | undefined {
  if (headers.get('transfer-encoding') === 'chunked') return takeChunks(bytes);
  const length = Number(headers.get('content-length') ?? 0);
  if (bytes.length < length) return undefined;
  return { body: bytes.subarray(0, length), rest: bytes.subarray(length) };
}

/** Takes the first whole response off the front; undefined when it is not complete. */
function takeReply(bytes: Buffer, bodiless: boolean): { reply: Reply; rest: Buffer } | undefined {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const [statusLine = '', ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n');
  const headers = new Headers(
    lines.map((line): [string, string] => [
      line.slice(0, line.indexOf(':')),
      line.slice(line.indexOf(':') + 1).trim(),
    ]),
  );
  const after = bytes.subarray(end + 4);
  const taken = bodiless ? { body: Buffer.alloc(0), rest: after } : takeBody(after, headers);
  if (!taken) return undefined;
  const { body, rest } = taken;
  const reply = {
    status: Number(statusLine.split(' ')[1]),
    headers,
    body: (body.length > 0 ? JSON.parse(body.toString()) : undefined) as Reply['body'],
  };
  return { reply, rest };
}

/**
 * Sends bytes as they are over a connection of its own. Resolves with the responses once `count`
 * have come or the server has closed the connection. `bodiless` for answers to HEAD.
 */
export function exchange(
  url: string,
  bytes: string | Buffer,
  { count = 1, bodiless = false } = {},
): Promise<Reply[]> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const replies: Reply[] = [];
    let received: Buffer = Buffer.alloc(0);
    const socket = connect(Number(port), hostname, () => void socket.write(bytes));
    const finish = (): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(replies);
    };
    const timer = setTimeout(() => {
      socket.destroy();
      reject(new Error(`no answer, and the connection was not closed: ${received.toString()}`));
    }, TIMEOUT_MS);
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk]);
      for (
        let taken = takeReply(received, bodiless);
        taken;
        taken = takeReply(received, bodiless)
      ) {
        replies.push(taken.reply);
        received = taken.rest;
      }
      if (replies.length >= count) finish();
    });
    // A server that refuses a request may reset the connection while the rest of the request is
    // still being written.
    socket.on('error', () => undefined);
    socket.on('close', finish);
  });
}

/**
 * The text of a request: `rawRequest('POST /v1/agents', { 'content-type': … }, body)`; the length
 * is added when there is a body.
 */
export function rawRequest(
  line: string,
  headers: readonly (readonly [string, string])[] = [],
  body = '',
): string {
  const lines = [
    `${line} HTTP/1.1`,
    'host: localhost',
    ...headers.map(([name, value]) => `${name}: ${value}`),
  ];
  if (body !== '') lines.push(`content-length: ${Buffer.byteLength(body)}`);
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}
