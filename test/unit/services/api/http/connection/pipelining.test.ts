import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { expect, test } from '@jest/globals';
import { LIMITS } from '../../../../../../shared/limits.ts';
import { answerInOrder } from '../../../../../../services/api/http/connection/pipelining.ts';

const REQUEST = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';

test('the requests of a connection begin in order, and whatever has begun hears of the client’s leaving', async () => {
  const begun: ServerResponse[] = [];
  let next = (): void => undefined;
  const server = createServer(
    answerInOrder({
      holds: () => true,
      answer(_request, response) {
        begun.push(response);
        next();
      },
      refuse: () => undefined,
    }),
  );
  const untilNext = () => new Promise<void>((resolve) => (next = resolve));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  try {
    const first = untilNext();
    client.write(REQUEST.repeat(3));
    await first;
    const second = untilNext();
    begun[0]!.end();
    await second;
    expect(begun).toHaveLength(2);
    const closed = once(begun[1]!, 'close');
    client.destroy();
    await closed;
    expect(begun).toHaveLength(2);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test.each([
  ['are too many', Infinity, LIMITS.http.pipelined],
  ['do not fit in memory', 1, 2],
])(
  'a connection whose requests %s is cut, and no later ones are counted',
  async (_, fits, counted) => {
    let held = 0;
    const server = createServer(
      answerInOrder({
        holds: () => ++held <= fits,
        answer: () => undefined,
        refuse: () => undefined,
      }),
    );
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
    try {
      client.on('error', () => undefined);
      client.write(REQUEST.repeat(100));
      await once(client, 'close');
      expect(held).toBe(counted);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  },
);
