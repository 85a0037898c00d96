/** The library's own queue of requests and connection, which kafkajs does not export. */
import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
import { createKafka } from '../../../../infra/kafka/client.ts';
import { hideAbortedMessages } from '../../../../infra/kafka/kafkajsPatch.ts';
import {
  responseTo,
  startLyingBroker,
  type BrokerRequest,
  type LyingBroker,
} from '../../../support/servers/kafka/lyingBroker.ts';

interface Queue {
  checkPendingRequests(): void;
  push(request: object): void;
  fulfillRequest(answer: object): void;
  maybeThrottle(ms: number): void;
  destroy(): void;
}
interface Connection {
  requestQueue: Queue;
  connect(): Promise<unknown>;
  send(request: object): Promise<unknown>;
  sendAuthRequest(request: object): Promise<unknown>;
  disconnect(): Promise<unknown>;
}
interface RecordDecoder {
  readVarInt(): number;
  readVarIntArray(read: (decoder: RecordDecoder) => unknown): unknown[];
}
type Library<Class> = new (options: object | Buffer) => Class;

const load = createRequire(import.meta.url);
const RequestQueue = load('kafkajs/src/network/requestQueue') as Library<Queue>;
const KafkaConnection = load('kafkajs/src/network/connection') as Library<Connection>;
const Encoder = load('kafkajs/src/protocol/encoder') as Library<object>;
const Decoder = load('kafkajs/src/protocol/decoder') as Library<RecordDecoder>;
const createSocketFactory = load('kafkajs/src/network/socketFactory') as () => unknown;

const nothing = (): void => undefined;
const logger = {
  namespace: () => logger,
  debug: nothing,
  info: nothing,
  warn: nothing,
  error: nothing,
};

/** Only timers of kafkajs and the patch; sockets have their own. */
const fakeTimers = (): void =>
  void jest.useFakeTimers({
    doNotFake: ['Date', 'nextTick', 'queueMicrotask', 'setImmediate', 'clearImmediate'],
  });

afterEach(() => {
  jest.useRealTimers();
  jest.restoreAllMocks();
});

describe('requests that wait', () => {
  let queue: Queue;
  let sent: number[];
  beforeEach(() => {
    sent = [];
    queue = new RequestQueue({
      maxInFlightRequests: 1,
      requestTimeout: 1_000,
      clientId: 'test',
      broker: 'test',
      logger,
      isConnected: () => true,
    });
  });
  afterEach(() => queue.destroy());

  const push = (correlationId: number): void =>
    queue.push({
      entry: { correlationId, resolve: nothing, reject: nothing },
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

  test('throttling ends after 30 seconds, whatever the broker says', () => {
    jest.useFakeTimers();
    queue.maybeThrottle(2 ** 31 - 1);
    push(1);
    jest.advanceTimersByTime(29_900);
    expect(sent).toEqual([]);
    jest.advanceTimersByTime(200);
    expect(sent).toEqual([1]);
  });

  test('a clock that steps back does not extend throttling by its step', () => {
    jest.useFakeTimers();
    const now = Date.now();
    queue.maybeThrottle(1_000);
    push(1);
    jest.setSystemTime(now - 3_600_000);
    jest.advanceTimersByTime(1_000);
    expect(sent).toEqual([]);
    jest.advanceTimersByTime(30_100);
    expect(sent).toEqual([1]);
  });
});

describe('a batch of records', () => {
  const { Codecs } = load('kafkajs/src/protocol/message/compression') as {
    Codecs: Array<() => { decompress(buffer: Buffer): Promise<Buffer> }>;
  };
  const GZIP = 1;
  const decompress = (bytes: number): Promise<Buffer> =>
    Codecs[GZIP]!().decompress(gzipSync(Buffer.alloc(bytes)));

  test('is decompressed up to the size of the largest response', async () => {
    expect(await decompress(1_000_000)).toHaveLength(1_000_000);
    await expect(decompress(40 * 1024 * 1024)).rejects.toMatchObject({
      code: 'ERR_BUFFER_TOO_LARGE',
    });
  });

  test('has no more headers than bytes', () => {
    let read = 0;
    const headersOf = (bytes: number[]): unknown[] =>
      new Decoder(Buffer.from(bytes)).readVarIntArray((decoder) => {
        if ((read += 1) > 1_000) throw new Error('endless');
        return decoder.readVarInt();
      });
    expect(headersOf([4, 2, 4])).toEqual([1, 2]);
    expect(() => headersOf([0xfe, 0xff, 0xff, 0xff, 0x0f])).toThrow('malformed record');
  });
});

describe('a connection', () => {
  let broker: LyingBroker;
  let connection: Connection;
  /** The answer to each request; none by default. */
  let respond: (request: BrokerRequest, socket: Socket) => Buffer | undefined;

  beforeEach(async () => {
    respond = () => undefined;
    broker = await startLyingBroker((request, socket) => respond(request, socket));
    const [host, port] = broker.address.split(':');
    connection = new KafkaConnection({
      host,
      port: Number(port),
      logger,
      socketFactory: createSocketFactory(),
      requestTimeout: 15_000,
      connectionTimeout: 1_000,
    });
    await connection.connect();
  });
  afterEach(async () => {
    await broker.close();
    await connection.disconnect();
  });

  const API = { apiKey: 3, apiName: 'Test', apiVersion: 0 };
  /** Sends a request; resolves with the response's content. */
  const send = (limits: { requestTimeout?: number } = {}): Promise<unknown> =>
    connection.send({
      ...limits,
      request: { ...API, encode: async () => new Encoder({}) },
      response: {
        decode: async (payload: Buffer) => ({ payload, clientSideThrottleTime: 0 }),
        parse: async ({ payload }: { payload: Buffer }) => payload.toString(),
      },
    });
  const untilRequested = async (count: number): Promise<void> => {
    while (broker.requests.length < count)
      await new Promise<void>((resolve) => void setImmediate(resolve));
  };
  const length = (bytes: number): Buffer => {
    const field = Buffer.alloc(4);
    field.writeInt32BE(bytes);
    return field;
  };

  test.each([0, 3, -1, -4])('survives a response of %p bytes', async (bytes) => {
    respond = () => Buffer.concat([length(bytes), Buffer.alloc(Math.max(0, bytes))]);
    await expect(send()).rejects.toThrow('malformed response');
  });

  test('of a client of the relay is patched', async () => {
    respond = () => length(0);
    const kafka = createKafka({ brokers: [broker.address], clientId: 'test', logger });
    await expect(kafka.admin().connect()).rejects.toThrow('malformed response');
  });

  test('refuses a response that is too large for memory before it has come', async () => {
    respond = () => length(2 ** 31 - 1);
    await expect(send()).rejects.toThrow('response of 2147483647 bytes');
  });

  test('accepts a large response', async () => {
    const content = 'x'.repeat(12 * 1024 * 1024);
    respond = (request) => responseTo(request, Buffer.from(content));
    expect(await send()).toBe(content);
  });

  test('begins anew after a connection that ended amid a response', async () => {
    respond = (request, socket) =>
      void socket.end(responseTo(request, Buffer.alloc(9)).subarray(0, 9));
    await expect(send()).rejects.toThrow('Closed connection');
    while (broker.connections().open > 0) await sleep(1);
    respond = (request) => responseTo(request, Buffer.from('fine'));
    await connection.connect();
    expect(await send()).toBe('fine');
  });

  test('is closed by the client, also while the broker goes on sending', async () => {
    respond = (_request, socket) => {
      const sending = setInterval(() => socket.write(Buffer.alloc(4)), 5);
      socket.on('close', () => clearInterval(sending));
      return length(1_000_000);
    };
    const failed = expect(send()).rejects.toThrow('no answer within 3000 ms');
    await untilRequested(1);
    fakeTimers();
    const closed = connection.disconnect();
    jest.advanceTimersByTime(3_000);
    await Promise.all([failed, closed]);
    jest.useRealTimers();
    while (broker.connections().open > 0) await sleep(5);
  });

  test('gives a throttled request up when it is closed', async () => {
    connection.requestQueue.maybeThrottle(60_000);
    const failed = expect(send()).rejects.toMatchObject({
      message: 'no answer within 3000 ms',
      retriable: true,
    });
    await sleep(10);
    fakeTimers();
    const closed = connection.disconnect();
    jest.advanceTimersByTime(3_000);
    await Promise.all([failed, closed]);
    expect(broker.requests).toEqual([]);
  });

  test('gives a request up though the clock was set back', async () => {
    fakeTimers();
    const failed = expect(send()).rejects.toMatchObject({
      message: 'no answer within 45000 ms',
      retriable: true,
    });
    await untilRequested(1);
    jest.spyOn(Date, 'now').mockReturnValue(0);
    jest.advanceTimersByTime(45_000);
    await failed;
  });

  test('gives a request with a longer limit of its own more time', async () => {
    fakeTimers();
    const failed = expect(send({ requestTimeout: 20_000 })).rejects.toThrow('within 50000 ms');
    await untilRequested(1);
    jest.spyOn(Date, 'now').mockReturnValue(0);
    jest.advanceTimersByTime(50_000);
    await failed;
  });

  const SASL = { apiKey: 36, correlationId: 0 };
  const authenticate = (): Promise<unknown> =>
    connection.sendAuthRequest({
      request: { encode: async () => responseTo(SASL, Buffer.alloc(4)) },
      response: {},
    });

  test('gives authentication up where the broker is silent', async () => {
    fakeTimers();
    const failed = expect(authenticate()).rejects.toThrow('Connection closed');
    await untilRequested(1);
    jest.advanceTimersByTime(45_000);
    await failed;
  });

  test('gives authentication up where the broker resets the connection', async () => {
    respond = (_request, socket) => void socket.resetAndDestroy();
    await expect(authenticate()).rejects.toThrow('Connection closed');
  });
});

describe('aborted messages', () => {
  const ABORT = Buffer.from([0, 0, 0, 0]);
  const COMMIT = Buffer.from([0, 0, 0, 1]);
  const message = (
    offset: number,
    producerId: string,
    key: Buffer | null,
    inTransaction = true,
  ) => ({
    offset: String(offset),
    key,
    isControlRecord: key !== null,
    batchContext: { producerId, inTransaction },
  });

  const visible = ({ messages }: Parameters<typeof hideAbortedMessages>[0]): string[] =>
    messages.filter(({ isControlRecord }) => !isControlRecord).map(({ offset }) => offset);

  test('are hidden although the transaction that began first was aborted last', () => {
    const partition = {
      messages: [
        message(10, 'relay', null),
        message(11, 'other', null),
        message(12, 'other', ABORT),
        message(13, 'relay', ABORT),
        message(14, 'relay', null),
      ],
      abortedTransactions: [
        { producerId: 'other', firstOffset: '11' },
        { producerId: 'relay', firstOffset: '10' },
      ],
    };
    hideAbortedMessages(partition);
    expect(visible(partition)).toEqual(['14']);
    expect(partition.messages).toHaveLength(5);
  });

  test('are hidden, and no others, wherever in a partition a response begins', () => {
    const steps = fc.array(
      fc.record({
        producer: fc.integer({ min: 1, max: 3 }),
        what: fc.constantFrom('write', 'write', 'abort', 'commit', 'outside'),
      }),
      { maxLength: 40 },
    );
    fc.assert(
      fc.property(steps, fc.nat(40), (made, from) => {
        const open = new Map<string, number[]>();
        const committed = new Set<number>();
        // The broker's index: in the order of the markers.
        const index: { producerId: string; firstOffset: string; last: number }[] = [];
        const ends = ['1', '2', '3'].map((id) => ({ producer: Number(id), what: 'abort' }));
        const log = [...made, ...ends].flatMap(({ producer, what }, offset) => {
          const id = String(producer);
          const written = open.get(id) ?? [];
          if (what === 'outside') {
            committed.add(offset);
            return [message(offset, '0', null, false)];
          }
          if (what === 'write') {
            open.set(id, [...written, offset]);
            return [message(offset, id, null)];
          }
          open.delete(id);
          if (what === 'commit') for (const each of written) committed.add(each);
          else if (written.length > 0)
            index.push({ producerId: id, firstOffset: String(written[0]), last: offset });
          return [message(offset, id, what === 'commit' ? COMMIT : ABORT)];
        });
        const partition = {
          messages: log.filter(({ offset }) => Number(offset) >= from),
          abortedTransactions: index.filter(({ last }) => last >= from),
        };
        hideAbortedMessages(partition);
        expect(visible(partition)).toEqual(
          [...committed]
            .filter((offset) => offset >= from)
            .toSorted((a, b) => a - b)
            .map(String),
        );
      }),
    );
  });
});
