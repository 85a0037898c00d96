import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import {
  Agent,
  buildConnector,
  requestThrough,
} from '../../../../../infra/lib/http/dispatchers.ts';
import { buildLimitedConnector } from '../../../../../infra/lib/http/uncountedBytes.ts';

const PIECES = ['first ', 'second ', 'third'];
let server: Server;
let origin: string;

beforeAll(async () => {
  const respond = async ({ url }: IncomingMessage, response: ServerResponse): Promise<void> => {
    for (const piece of PIECES) {
      response.write(`${url}:${piece}`);
      await sleep(5);
    }
    response.end();
  };
  server = createServer((request, response) => void respond(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => void server.close());

test('later reads, of this connection and of others, leave the pieces that were read before', async () => {
  const agent = new Agent({ connect: buildLimitedConnector(buildConnector, {}) });
  const paths = ['/a', '/b', '/c'];
  const readPieces = async (path: string): Promise<Buffer[]> => {
    const { body } = await requestThrough.call(agent as never, { origin, path, method: 'GET' });
    const pieces: Buffer[] = [];
    for await (const piece of body) pieces.push(piece as Buffer);
    return pieces;
  };
  const bodies = await Promise.all(paths.map(readPieces));
  expect(bodies.map((pieces) => Buffer.concat(pieces).toString())).toEqual(
    paths.map((path) => PIECES.map((piece) => `${path}:${piece}`).join('')),
  );
  await agent.close();
});
