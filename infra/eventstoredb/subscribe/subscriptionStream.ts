import { addAbortListener } from 'node:events';
import type { ReadResp } from '@eventstore/db-client/generated/streams_pb.js';
import type { Position, StoredEvent } from '../../../shared/ports/eventStore.ts';
import type { NodeConnection } from '../connection/connectionManager.ts';
import type { ReadCall } from '../connection/hostClient.ts';
import { formatPosition, isValidLogPosition } from '../read/positions.ts';
import { buildSubscribeRequest, isTurnlogEvent, toStoredEvent } from '../read/readAll.ts';

/** A message of the server to a subscription. */
export type SubscriptionMessage =
  | { kind: 'event'; event: StoredEvent }
  /** Everything up to the position was considered; undefined for an impossible position. */
  | { kind: 'checkpoint'; position: Position | undefined }
  /** Events from now on are live. Servers do not report when a subscription falls behind again. */
  | { kind: 'caught_up' };

/** A subscription call with flow control: the server sends only what the consumer takes. */
export interface SubscriptionStream {
  /** Takes the next message that has arrived. */
  take(): SubscriptionMessage | undefined;
  isEmpty(): boolean;
  /** Whether the buffer is full: the consumer is slower than the log. */
  isFull(): boolean;
  /**
   * Resolves with true when a message is available, with false after `timeoutMs`. Rejects with the
   * reason for the end of the subscription.
   */
  waitForMessage(timeoutMs: number): Promise<boolean>;
  cancel(): void;
}

interface StreamOptions {
  after: Position | undefined;
  requiresLeader: boolean;
  /** The server's time limit to confirm the subscription, in milliseconds. */
  confirmationMs: number;
  /** Ends the subscription. */
  signal: AbortSignal;
}

/** The number of messages that gRPC buffers: the default of an object stream in Node.js. */
const BUFFER_SIZE = 16;

function parseMessage(response: ReadResp): SubscriptionMessage | undefined {
  const recorded = response.getEvent()?.getEvent();
  if (recorded)
    return isTurnlogEvent(recorded) ? { kind: 'event', event: toStoredEvent(recorded) } : undefined;
  const checkpoint = response.getCheckpoint();
  if (checkpoint) {
    const position = {
      commit: BigInt(checkpoint.getCommitPosition()),
      prepare: BigInt(checkpoint.getPreparePosition()),
    };
    return {
      kind: 'checkpoint',
      position: isValidLogPosition(position) ? formatPosition(position) : undefined,
    };
  }
  return response.hasCaughtUp() ? { kind: 'caught_up' } : undefined;
}

function createSubscriptionStream(
  call: ReadCall,
  signal: AbortSignal,
  recordActivity: () => void,
): SubscriptionStream {
  const ending = new AbortController();
  const ended = AbortSignal.any([ending.signal, signal]);
  call.on('error', (error) => ending.abort(error));
  call.on('end', () => ending.abort(new Error('the server ended the subscription')));

  function take(): SubscriptionMessage | undefined {
    for (let response = call.read(); response !== null; response = call.read()) {
      recordActivity();
      const message = parseMessage(response);
      if (message) return message;
    }
    return undefined;
  }

  async function waitForMessage(timeoutMs: number): Promise<boolean> {
    ended.throwIfAborted();
    if (call.readableLength > 0) return true;
    const { promise, resolve, reject } = Promise.withResolvers<boolean>();
    using _ending = addAbortListener(ended, () => reject(ended.reason));
    const onReadable = (): void => resolve(true);
    call.on('readable', onReadable);
    const timer = setTimeout(resolve, timeoutMs, false);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      call.off('readable', onReadable);
    }
  }

  return {
    take,
    waitForMessage,
    isEmpty: () => call.readableLength === 0,
    isFull: () => call.readableLength >= BUFFER_SIZE,
    cancel: () => call.cancel(),
  };
}

/** Subscribes to Turnlog's streams. Rejects when the server does not confirm the subscription. */
export async function openSubscriptionStream(
  { client, lost, recordActivity }: NodeConnection,
  { after, requiresLeader, confirmationMs, signal }: StreamOptions,
): Promise<SubscriptionStream> {
  const ended = AbortSignal.any([signal, lost]);
  ended.throwIfAborted();
  const call = await client.openRead(buildSubscribeRequest(after), requiresLeader);
  const stream = createSubscriptionStream(call, ended, recordActivity);
  try {
    if (!(await stream.waitForMessage(confirmationMs)))
      throw new Error('the server does not confirm the subscription');
    return stream;
  } catch (error) {
    stream.cancel();
    throw error;
  }
}
