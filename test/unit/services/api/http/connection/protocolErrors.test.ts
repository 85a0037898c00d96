import { EventEmitter } from 'node:events';
import type { Server } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { PassThrough } from 'node:stream';
import { expect, test } from '@jest/globals';
import { typeIds } from '../../../../../../infra/ids/typeIds.ts';
import {
  answerProtocolErrors,
  refuseRequest,
} from '../../../../../../services/api/http/connection/protocolErrors.ts';
import { createLogger } from '../../../../../../shared/lib/logger.ts';

const LATE = Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });

/** A connection that has sent a part of a request. */
function connection() {
  let answer = '';
  const socket = Object.assign(new PassThrough(), { bytesRead: 10 });
  socket.write = (text: string): boolean => {
    answer += text;
    return true;
  };
  return { socket, answer: () => answer };
}

function makeServer(): EventEmitter {
  const server = new EventEmitter();
  answerProtocolErrors(server as Server, { ids: typeIds, logger: createLogger('silent') });
  return server;
}

test('requests that are late at once are answered in several turns of the event loop', async () => {
  const server = makeServer();
  const connections = Array.from({ length: 2_000 }, connection);
  for (const { socket } of connections) server.emit('clientError', LATE, socket);
  const answered = (): number => connections.filter(({ answer }) => answer() !== '').length;
  expect(answered()).toBeLessThan(1_000);
  while (answered() < 2_000) await nextTurn();
  for (const { answer } of connections) expect(answer()).toMatch(/^HTTP\/1.1 408 /);
});

test('a request that begins while it is late gets no 408', async () => {
  const server = makeServer();
  const others = Array.from({ length: 2_000 }, connection);
  const { socket, answer } = connection();
  for (const other of [...others, { socket }]) server.emit('clientError', LATE, other.socket);
  const request = Object.assign(new EventEmitter(), { socket, complete: false });
  server.emit('request', request, new EventEmitter());
  while (others.at(-1)!.answer() === '') await nextTurn();
  await nextTurn();
  expect(answer()).toBe('');
});

test('a CONNECT whose client resets the connection ends the connection, and not the process', () => {
  const server = makeServer();
  const { socket, answer } = connection();
  server.emit('connect', {}, socket);
  expect(answer()).toMatch(/^HTTP\/1.1 405 /);
  socket.emit('error', new Error('write ECONNRESET'));
  expect(socket.destroyed).toBe(true);
});

test('a request whose headers find no memory is refused as overload, to be tried again', () => {
  const { socket, answer } = connection();
  refuseRequest(socket, 'ERR_HEADER_MEMORY', typeIds);
  expect(answer()).toMatch(/^HTTP\/1.1 503 .*\r\nRetry-After: 1\r\n.*"code":"overloaded"/s);
});
