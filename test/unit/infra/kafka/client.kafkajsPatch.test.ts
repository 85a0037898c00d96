/** The library's own queue of requests to one broker, which kafkajs does not export. */
import { createRequire } from 'node:module';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { createKafka } from '../../../../infra/kafka/client.ts';

interface Queue {
  checkPendingRequests(): void;
  push(request: object): void;
  fulfillRequest(answer: object): void;
  destroy(): void;
}
const RequestQueue = createRequire(import.meta.url)('kafkajs/src/network/requestQueue') as new (
  options: object,
) => Queue;

let queue: Queue;
let sent: number[];
beforeEach(() => {
  createKafka({ brokers: ['127.0.0.1:9'], clientId: 'test', logger: { debug: () => undefined } });
  sent = [];
  queue = new RequestQueue({
    maxInFlightRequests: 1,
    requestTimeout: 1_000,
    clientId: 'test',
    broker: 'test',
    logger: { debug: () => undefined, warn: () => undefined },
    isConnected: () => true,
  });
});
afterEach(() => {
  queue.destroy();
  jest.restoreAllMocks();
});

const push = (correlationId: number): void =>
  queue.push({
    entry: { correlationId, resolve: () => undefined, reject: () => undefined },
    expectResponse: true,
    sendRequest: () => sent.push(correlationId),
  });

test('no timer is set where no request is pending', () => {
  const timers = jest.spyOn(globalThis, 'setTimeout');
  push(1);
  queue.fulfillRequest({ correlationId: 1, payload: Buffer.alloc(0), size: 0 });
  queue.checkPendingRequests();
  expect(sent).toEqual([1]);
  expect(timers).not.toHaveBeenCalled();
});

test('a request that has to wait is looked after, and sent when its turn has come', () => {
  const timers = jest.spyOn(globalThis, 'setTimeout');
  push(1);
  push(2);
  expect(timers.mock.calls.map(([, ms]) => ms! > 0)).toEqual([true]);
  queue.fulfillRequest({ correlationId: 1, payload: Buffer.alloc(0), size: 0 });
  expect(sent).toEqual([1, 2]);
});
