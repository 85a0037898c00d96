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
