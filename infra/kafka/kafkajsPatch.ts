/**
 * Bounds what a broker can do to the process through kafkajs 2.2.4, and corrects what the library shows
 * of aborted transactions.
 */
import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import { promisify } from 'node:util';
import { unzip } from 'node:zlib';
import type * as Kafkajs from 'kafkajs';
import { DeadlineExceeded } from '../../shared/lib/time/withDeadline.ts';

/**
 * A consumer requests 10 MiB, and gets more only if a single batch is larger. Far more is an attack or
 * a damaged length.
 */
const MAX_RESPONSE_BYTES = 32 * 1024 * 1024;
/** The field with the length of a response. */
const LENGTH_BYTES = 4;
/** Brokers throttle clients for the time of their quota windows, which is 11 seconds by default. */
const MAX_THROTTLE_MS = 30_000;
/** How long a connection waits for responses before it is closed. An idle fetch takes a second. */
const CLOSE_LIMIT_MS = 3_000;

/** The members of the library's queue of requests to one broker that the patch uses. */
interface RequestQueue {
  pending: readonly unknown[];
  /** The end of the broker's throttling, as of `Date.now()`; -1 if it never throttled. */
  throttledUntil: number;
  canSendSocketRequestImmediately(): boolean;
  scheduleCheckPendingRequests(): void;
}

interface BrokerRequest {
  requestTimeout?: number | null;
}

/** The members of the library's connection that the patch uses. */
interface Connection {
  socket?: Socket;
  requestTimeout: number;
  /** Set while the response to a SASL request is awaited. Such requests are not in the queue. */
  authHandlers: { onError(): void } | null;
  /** The bytes received of an incomplete response. */
  chunks: Buffer[];
  bytesBuffered: number;
  /** The length of the incomplete response, including the length field. */
  bytesNeeded: number;
  isConnected(): boolean;
  connect(): Promise<unknown>;
  processData(data: Buffer): void;
  send(request: BrokerRequest): Promise<unknown>;
  sendAuthRequest(request: BrokerRequest): Promise<unknown>;
  rejectRequests(error: Error): void;
  disconnect(): Promise<unknown>;
}

/** The members of the library's reader of a response that the patch uses. */
interface Decoder {
  buffer: Buffer;
  offset: number;
  readVarInt(): number;
  readVarIntArray(read: (decoder: Decoder) => unknown): unknown[];
}

/** The members of a fetched message that the patch uses. */
interface FetchedMessage {
  offset: string;
  key: Buffer | null;
  /** Control records move the offset, but no consumer sees them. */
  isControlRecord: boolean;
  batchContext: { producerId: string; inTransaction: boolean };
}

/** The response to a fetch, per partition. */
interface FetchedPartition {
  messages: FetchedMessage[];
  abortedTransactions?: { producerId: string; firstOffset: string }[] | null;
}

interface Broker {
  fetch(request: object): Promise<{ responses: { partitions: FetchedPartition[] }[] }>;
}

/** The key of the control record that aborts a transaction: version 0, type 0. */
const ABORT_MARKER = Buffer.alloc(4);

const load = createRequire(import.meta.url);

/** The prototype of a class that kafkajs does not export. */
function prototypeOf<Members>(file: string, methods: readonly (keyof Members & string)[]): Members {
  const { prototype } = load(`kafkajs/src/${file}`) as { prototype: Members };
  for (const method of methods)
    if (typeof prototype[method] !== 'function')
      throw new Error(`This version of kafkajs can't be patched: ${file} has no ${method}().`);
  return prototype;
}

/**
 * Limits throttling. The library neither caps it nor uses a monotonic clock, and requests that wait
 * for its end have no timeout. Without the limit, a step of the clock would also extend it.
 */
function capThrottle(queue: RequestQueue): void {
  queue.throttledUntil = Math.min(queue.throttledUntil, Date.now() + MAX_THROTTLE_MS);
}

function patchRequestQueue(): void {
  const queue = prototypeOf<RequestQueue>('network/requestQueue', [
    'canSendSocketRequestImmediately',
    'scheduleCheckPendingRequests',
  ]);
  const { canSendSocketRequestImmediately: canSend, scheduleCheckPendingRequests: schedule } =
    queue;
  queue.canSendSocketRequestImmediately = function canSendAfterThrottle() {
    capThrottle(this);
    return canSend.call(this);
  };
  // The library sets a timer after every response, even without a pending request. The delay is then
  // negative, for which Node.js prints a warning. Without a pending request there is nothing to check
  // later, because the next request checks by itself.
  queue.scheduleCheckPendingRequests = function scheduleWherePending() {
    capThrottle(this);
    if (this.pending.length > 0) schedule.call(this);
  };
}

/** Refuses malformed and oversized responses, by closing the connection. */
function patchResponses(connection: Connection): void {
  const { connect, processData } = connection;
  // The library would read the rest of a response from the next connection.
  connection.connect = function connectWithEmptyBuffer() {
    if (!this.isConnected())
      Object.assign(this, { chunks: [], bytesBuffered: 0, bytesNeeded: LENGTH_BYTES });
    return connect.call(this);
  };
  // An error thrown here is an uncaught exception of the process.
  connection.processData = function processChecked(data) {
    try {
      processData.call(this, data);
    } catch (cause) {
      this.socket?.destroy(new Error('the broker sent a malformed response', { cause }));
    }
    const bytes = this.bytesNeeded - LENGTH_BYTES;
    if (bytes > MAX_RESPONSE_BYTES)
      this.socket?.destroy(new Error(`the broker announced a response of ${bytes} bytes`));
  };
}

/**
 * The library restarts a consumer that can't join its group only after an error with `retriable`, which
 * its own timeouts have.
 */
const noAnswerError = (limitMs: number): Error =>
  Object.assign(new DeadlineExceeded(limitMs), { retriable: true });

/** Ends requests that the library's own timeout does not: throttled ones, those during a step of the clock, and SASL. */
function patchRequests(connection: Connection): void {
  const { send, sendAuthRequest, rejectRequests } = connection;
  connection.rejectRequests = function rejectAllRequests(error) {
    rejectRequests.call(this, error);
    this.authHandlers?.onError();
  };
  const limited = (method: Connection['send']) =>
    async function sendWithinLimit(this: Connection, request: BrokerRequest) {
      const limitMs = Math.max(this.requestTimeout, request.requestTimeout ?? 0) + MAX_THROTTLE_MS;
      const timer = setTimeout(() => {
        const error = noAnswerError(limitMs);
        this.rejectRequests(error);
        this.socket?.destroy(error);
      }, limitMs);
      try {
        return await method.call(this, request);
      } finally {
        clearTimeout(timer);
      }
    };
  connection.send = limited(send);
  connection.sendAuthRequest = limited(sendAuthRequest);
}

/** Closes the socket of a connection that is no longer used. The library leaves that to the broker. */
function patchDisconnect(connection: Connection): void {
  const { disconnect } = connection;
  connection.disconnect = async function disconnectWithinLimit() {
    const { socket } = this;
    const timer = setTimeout(
      () => this.rejectRequests(noAnswerError(CLOSE_LIMIT_MS)),
      CLOSE_LIMIT_MS,
    );
    try {
      return await disconnect.call(this);
    } finally {
      clearTimeout(timer);
      socket?.destroy();
    }
  };
}

const decompress = (buffer: Buffer): Promise<Buffer> =>
  promisify(unzip)(buffer, { maxOutputLength: MAX_RESPONSE_BYTES });

/** Limits the memory that records take: the headers of a record, and what a batch decompresses to. */
function patchRecords(): void {
  const decoder = prototypeOf<Decoder>('protocol/decoder', ['readVarInt', 'readVarIntArray']);
  const { readVarIntArray } = decoder;
  // Beyond the end of a record, the library reads empty headers, as many as the record announces.
  decoder.readVarIntArray = function readWithinBuffer(read) {
    const { offset } = this;
    if (this.readVarInt() > this.buffer.length - this.offset)
      throw new Error('the broker sent a malformed record');
    this.offset = offset;
    return readVarIntArray.call(this, read);
  };
  const { CompressionCodecs, CompressionTypes } = load('kafkajs') as typeof Kafkajs;
  const gzip = CompressionCodecs[CompressionTypes.GZIP]() as object;
  CompressionCodecs[CompressionTypes.GZIP] = () => ({ ...gzip, decompress });
}

/**
 * Hides the messages of aborted transactions, as Kafka's own consumer does. Brokers list the
 * transactions in the order in which they were aborted. The library expects them in the order in
 * which they began, and of several that began before the first message it hides one: it would show
 * messages that were never committed.
 */
export function hideAbortedMessages(partition: FetchedPartition): void {
  const beginnings = (partition.abortedTransactions ?? [])
    .map(({ producerId, firstOffset }) => ({ producerId, firstOffset: BigInt(firstOffset) }))
    .toSorted((a, b) => (a.firstOffset < b.firstOffset ? -1 : 1));
  partition.abortedTransactions = [];
  const aborted = new Set<string>();
  let begun = 0;
  for (const message of partition.messages) {
    const offset = BigInt(message.offset);
    for (; begun < beginnings.length && beginnings[begun]!.firstOffset <= offset; begun += 1)
      aborted.add(beginnings[begun]!.producerId);
    const { producerId, inTransaction } = message.batchContext;
    if (!message.isControlRecord)
      message.isControlRecord = inTransaction && aborted.has(producerId);
    else if (message.key?.equals(ABORT_MARKER)) aborted.delete(producerId);
  }
}

function patchFetch(): void {
  const broker = prototypeOf<Broker>('broker', ['fetch']);
  const { fetch } = broker;
  broker.fetch = async function fetchCommitted(request) {
    const data = await fetch.call(this, request);
    for (const { partitions } of data.responses)
      for (const partition of partitions)
        if (partition.abortedTransactions?.length) hideAbortedMessages(partition);
    return data;
  };
}

/**
 * Patches the library's private classes, once for the whole process. Throws when the version of the
 * library lacks one of the methods.
 */
export function patchKafkajs(): void {
  patchRequestQueue();
  const connection = prototypeOf<Connection>('network/connection', [
    'connect',
    'processData',
    'send',
    'sendAuthRequest',
    'rejectRequests',
    'disconnect',
  ]);
  patchResponses(connection);
  patchRequests(connection);
  patchDisconnect(connection);
  patchRecords();
  patchFetch();
}
