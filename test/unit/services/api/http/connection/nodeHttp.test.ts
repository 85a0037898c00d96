import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { connect, Socket, type AddressInfo } from 'node:net';
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { GatheredRequest } from '../../../../../../services/api/http/connection/nodeHttp.ts';

async function piecesOf(request: IncomingMessage): Promise<Buffer[]> {
  const pieces: Buffer[] = [];
  request.on('data', (piece: Buffer) => pieces.push(piece));
  await once(request, 'end');
  return pieces;
}

const anyPieces = fc.array(
  fc.oneof(
    fc.uint8Array({ minLength: 1, maxLength: 20 }),
    fc.integer({ min: 10_000, max: 20_000 }).map((length) => new Uint8Array(length).fill(length)),
  ),
  { maxLength: 12 },
);

test('a request has the bytes of its body in order, whenever they are read', async () => {
  await fc.assert(
    fc.asyncProperty(anyPieces, fc.nat({ max: 12 }), async (pieces, unread) => {
      const request = new GatheredRequest(new Socket());
      let read: Promise<Buffer[]> | undefined;
      for (const [at, piece] of pieces.entries()) {
        if (at === unread) read = piecesOf(request);
        request.push(Buffer.from(piece));
      }
      request.push(null);
      expect(Buffer.concat(await (read ?? piecesOf(request)))).toEqual(Buffer.concat(pieces));
    }),
  );
});

test.each([
  ['is read as it arrives', true],
  ['is not read at first', false],
])('a body of chunks of one byte that %s has few pieces', async (_, isReadAtOnce) => {
  const BYTES = 200_000;
  const pieces = Promise.withResolvers<Buffer[]>();
  const server = createServer({ IncomingMessage: GatheredRequest }, (request, response) => {
    const read = (): void => pieces.resolve(piecesOf(request));
    if (isReadAtOnce) read();
    else setTimeout(read, 200);
    request.once('end', () => response.end());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.write('POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n');
  client.write('1\r\nx\r\n'.repeat(BYTES));
  client.write('0\r\n\r\n');
  const read = await pieces.promise;
  expect(Buffer.concat(read).toString()).toBe('x'.repeat(BYTES));
  expect(read.length).toBeLessThan(20);
  client.destroy();
  server.close();
});

test('of bodies of many pieces, one is read on in each turn of the event loop', async () => {
  const BYTES = 100_000;
  const CLIENTS = 8;
  /** The requests that got pieces after their first read, by turn. */
  const turns: Set<Watched>[] = [];
  let inTurn: Set<Watched> | undefined;
  class Watched extends GatheredRequest {
    #turn: typeof inTurn;
    override push(piece: Buffer | null, encoding?: BufferEncoding): boolean {
      if (!inTurn) {
        inTurn = new Set();
        turns.push(inTurn);
        setImmediate(() => (inTurn = undefined));
      }
      this.#turn ??= inTurn;
      if (piece && this.#turn !== inTurn) inTurn.add(this);
      return super.push(piece, encoding);
    }
  }
  let ended = 0;
  const all = Promise.withResolvers<void>();
  const server = createServer({ IncomingMessage: Watched }, (request, response) => {
    request.resume().once('end', () => {
      response.end();
      if ((ended += 1) === CLIENTS) all.resolve();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const clients = Array.from({ length: CLIENTS }, () => {
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
    client.write('POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n');
    client.write('1\r\nx\r\n'.repeat(BYTES));
    client.write('0\r\n\r\n');
    return client;
  });
  await all.promise;
  expect(turns.length).toBeGreaterThan(2 * CLIENTS);
  expect(Math.max(...turns.map(({ size }) => size))).toBe(1);
  for (const client of clients) client.destroy();
  server.close();
});

test('complete requests of many pieces take no turns from others', async () => {
  const requestOf = (isComplete: boolean): { isResumed: () => boolean } => {
    const socket = new Socket();
    let isResumed = false;
    socket.resume = () => {
      isResumed = true;
      return socket;
    };
    const request = new GatheredRequest(socket);
    for (let piece = 0; piece < 1_001; piece += 1) request.push(Buffer.from('x'));
    request.complete = isComplete;
    return { isResumed: () => isResumed };
  };
  for (let at = 0; at < 50; at += 1) requestOf(true);
  const other = requestOf(false);
  await new Promise(setImmediate);
  expect(other.isResumed()).toBe(true);
});

test('a body of many pieces that its handler does not read is discarded', async () => {
  const server = createServer({ IncomingMessage: GatheredRequest }, (request, response) => {
    setTimeout(() => response.end(request.url), 50);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.write('POST /first HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n');
  client.write(`${'1\r\nx\r\n'.repeat(300_000)}0\r\n\r\n`);
  client.write('GET /second HTTP/1.1\r\nhost: x\r\n\r\n');
  let answers = '';
  client.setEncoding('latin1');
  for await (const text of client) {
    answers += text as string;
    if (answers.includes('/second')) break;
  }
  expect(answers.match(/HTTP\/1.1 200 OK/g)).toHaveLength(2);
  client.destroy();
  server.close();
});
