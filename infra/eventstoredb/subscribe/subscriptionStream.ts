import { addAbortListener } from 'node:events';
import type { Position, StoredEvent } from '../../../shared/ports/eventStore.ts';
import type { NodeConnection } from '../connection/connectionManager.ts';
import type { ReadCall } from '../connection/hostClient.ts';
import { formatPosition, isValidLogPosition } from '../read/positions.ts';
import {
  buildSubscribeRequest,
  isTurnlogEvent,
  sizeInMemory,
  toStoredEvent,
} from '../read/readAll.ts';
import type { ReadResponse } from '../read/readResponse.ts';

/** A message of the server to a subscription. */
export type SubscriptionMessage =
  | { kind: 'event'; event: StoredEvent; bytes: number }
  /** Everything up to the position was considered; undefined for an impossible position. */
  | { kind: 'checkpoint'; position: Position | undefined }
  /** Events from now on are live. Servers do not report when a subscription falls behind again. */
  | { kind: 'caught_up' };

/** A subscription call that reads ahead while its consumer works. */
export interface SubscriptionStream {
  /** Takes the next message that has arrived. */
  take(): SubscriptionMessage | undefined;
  isEmpty(): boolean;
  /** Whether many messages wait: the consumer is slower than the log. */
  isBehind(): boolean;
  /**
   * Resolves with true when `count` messages (1) are available, or another message than an event.
   * After `timeoutMs`, resolves with whether any message is. Rejects with the reason for the end of
   * the subscription.
   */
  waitForMessages(timeoutMs: number, count?: number): Promise<boolean>;
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

/** The consumer is slower than the log if this many messages wait. */
const BEHIND = 16;
/**
 * How much is read ahead, in messages and in bytes of events. Beyond it, the server waits. A
 * consumer that writes to a database waits as long for that as for a batch of the log.
 */
const READ_AHEAD = { messages: 1_000, bytes: 2 * 1024 * 1024 };

function parseMessage({
  event,
  checkpoint,
  caughtUp,
}: ReadResponse): SubscriptionMessage | undefined {
  if (event) {
    if (!isTurnlogEvent(event)) return undefined;
    return { kind: 'event', event: toStoredEvent(event), bytes: sizeInMemory(event) };
  }
  if (checkpoint) {
    const position = isValidLogPosition(checkpoint) ? formatPosition(checkpoint) : undefined;
    return { kind: 'checkpoint', position };
  }
  return caughtUp ? { kind: 'caught_up' } : undefined;
}

const sizeOf = (message: SubscriptionMessage): number =>
  message.kind === 'event' ? message.bytes : 0;

/** Messages in order of arrival, with the bytes of their events. */
function createMessageQueue() {
  let messages: SubscriptionMessage[] = [];
  let takenCount = 0;
  let bytes = 0;
  const length = (): number => messages.length - takenCount;
  return {
    length,
    isFull: () => length() >= READ_AHEAD.messages || bytes >= READ_AHEAD.bytes,
    isHalfEmpty: () => length() <= READ_AHEAD.messages / 2 && bytes <= READ_AHEAD.bytes / 2,
    push(message: SubscriptionMessage): void {
      messages.push(message);
      bytes += sizeOf(message);
    },
    take(): SubscriptionMessage | undefined {
      const message = messages[takenCount];
      if (message === undefined) return undefined;
      takenCount += 1;
      bytes -= sizeOf(message);
      if (takenCount === messages.length || takenCount === READ_AHEAD.messages) {
        messages = messages.slice(takenCount);
        takenCount = 0;
      }
      return message;
    },
  };
}

function createSubscriptionStream(
  call: ReadCall,
  signal: AbortSignal,
  recordActivity: () => void,
): SubscriptionStream & { waitForConfirmation(timeoutMs: number): Promise<boolean> } {
  const ending = new AbortController();
  const ended = AbortSignal.any([ending.signal, signal]);
  const queue = createMessageQueue();
  let isConfirmed = false;
  let isPaused = false;
  /** Called for each response. */
  let onResponse: ((message: SubscriptionMessage | undefined) => void) | undefined;

  call.on('error', (error) => ending.abort(error));
  call.on('end', () => ending.abort(new Error('the server ended the subscription')));
  call.on('data', (response) => {
    recordActivity();
    isConfirmed = true;
    const message = parseMessage(response);
    if (message) queue.push(message);
    if (queue.isFull() && !isPaused) {
      isPaused = true;
      call.pause();
    }
    onResponse?.(message);
  });

  /** Waits for a response that satisfies, until a timeout. Rejects when the subscription ends. */
  async function waitForResponse(
    timeoutMs: number,
    satisfies: (message: SubscriptionMessage | undefined) => boolean,
  ): Promise<void> {
    ended.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    using _ending = addAbortListener(ended, () => reject(ended.reason));
    const timer = setTimeout(resolve, timeoutMs);
    onResponse = (message) => satisfies(message) && resolve();
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      onResponse = undefined;
    }
  }

  return {
    async waitForConfirmation(timeoutMs) {
      await waitForResponse(timeoutMs, () => true);
      return isConfirmed;
    },
    async waitForMessages(timeoutMs, count = 1) {
      if (queue.length() < count)
        await waitForResponse(
          timeoutMs,
          (message) =>
            queue.length() >= count || isPaused || (message && message.kind !== 'event') === true,
        );
      return queue.length() > 0;
    },
    take() {
      const message = queue.take();
      if (isPaused && queue.isHalfEmpty()) {
        isPaused = false;
        call.resume();
      }
      return message;
    },
    isEmpty: () => queue.length() === 0,
    isBehind: () => queue.length() >= BEHIND,
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
    if (!(await stream.waitForConfirmation(confirmationMs)))
      throw new Error('the server does not confirm the subscription');
    return stream;
  } catch (error) {
    stream.cancel();
    throw error;
  }
}
