import { connect } from 'node:net';
import type { Reply } from './service.ts';

const TIMEOUT_MS = 30_000;

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
  const length = bodiless ? 0 : Number(headers.get('content-length') ?? 0);
  const body = bytes.subarray(end + 4, end + 4 + length);
  if (body.length < length) return undefined;
  const reply = {
    status: Number(statusLine.split(' ')[1]),
    headers,
    body: (length > 0 ? JSON.parse(body.toString()) : undefined) as Reply['body'],
  };
  return { reply, rest: bytes.subarray(end + 4 + length) };
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
