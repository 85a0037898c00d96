import { addAbortListener } from 'node:events';
import type { ReadResp } from '@eventstore/db-client/generated/streams_pb.js';
import type { Position, StoredEvent } from '../../shared/ports/eventStore.ts';
import type { ReadCall } from './clientInternals.ts';
import type { Connection } from './connection.ts';
import { isPlace, toPosition } from './positions.ts';
import { subscribeRequest } from './readRequests.ts';
import { canBeOurs, toStoredEvent } from './storedEvent.ts';

/** One step of the log as a server tells it to a subscription. */
export type Step =
  | { kind: 'event'; event: StoredEvent }
  /**
   * Everything up to here has been considered; undefined where the server names what can't be a
   * position in a log.
   */
  | { kind: 'checkpoint'; position: Position | undefined }
  /** From now on events come as they are written. Nobody tells of falling behind again. */
  | { kind: 'caught_up' };

/** One subscription, pulled: while nothing is taken, nothing comes over the wire. */
export interface Feed {
  /** What has arrived and was not taken yet, one at a time. */
  take(): Step | undefined;
  isEmpty(): boolean;
  /** True when as much has arrived as is kept: the consumer is slower than the log. */
  isFull(): boolean;
  /**
   * Resolves true when there is something to take, false after `timeoutMs`. Rejects once the
   * subscription is over, with what ended it.
   */
  arrival(timeoutMs: number): Promise<boolean>;
  stop(): void;
}

interface FeedOptions {
  after: Position | undefined;
  requiresLeader: boolean;
  /** How long the server may take to confirm the subscription; a healthy one does at once. */
  confirmationMs: number;
  /** Ends the feed. */
  signal: AbortSignal;
}

/** Messages that gRPC holds for a reader: the default of an object stream in Node.js. */
const BUFFERED = 16;

function toStep(response: ReadResp): Step | undefined {
  const recorded = response.getEvent()?.getEvent();
  if (recorded)
    return canBeOurs(recorded) ? { kind: 'event', event: toStoredEvent(recorded) } : undefined;
  const checkpoint = response.getCheckpoint();
  if (checkpoint) {
    const place = {
      commit: BigInt(checkpoint.getCommitPosition()),
      prepare: BigInt(checkpoint.getPreparePosition()),
    };
    return { kind: 'checkpoint', position: isPlace(place) ? toPosition(place) : undefined };
  }
  return response.hasCaughtUp() ? { kind: 'caught_up' } : undefined;
}

function createFeed(call: ReadCall, signal: AbortSignal, heard: () => void): Feed {
  const over = new AbortController();
  const ended = AbortSignal.any([over.signal, signal]);
  call.on('error', (error) => over.abort(error));
  call.on('end', () => over.abort(new Error('the server ended the subscription')));

  function take(): Step | undefined {
    for (let response = call.read(); response !== null; response = call.read()) {
      heard();
      const step = toStep(response);
      if (step) return step;
    }
    return undefined;
  }

  async function arrival(timeoutMs: number): Promise<boolean> {
    ended.throwIfAborted();
    if (call.readableLength > 0) return true;
    const { promise, resolve, reject } = Promise.withResolvers<boolean>();
    using _ending = addAbortListener(ended, () => reject(ended.reason));
    const arrived = (): void => resolve(true);
    call.on('readable', arrived);
    const timer = setTimeout(resolve, timeoutMs, false);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      call.off('readable', arrived);
    }
  }

  return {
    take,
    arrival,
    isEmpty: () => call.readableLength === 0,
    isFull: () => call.readableLength >= BUFFERED,
    stop: () => call.cancel(),
  };
}

/** Subscribes to our streams. Rejects when the call can't be opened, or is not confirmed. */
export async function openFeed(
  { client, lost, heard }: Connection,
  { after, requiresLeader, confirmationMs, signal }: FeedOptions,
): Promise<Feed> {
  const ended = AbortSignal.any([signal, lost]);
  ended.throwIfAborted();
  const call = await client.read(subscribeRequest(after), requiresLeader);
  const feed = createFeed(call, ended, heard);
  try {
    if (!(await feed.arrival(confirmationMs)))
      throw new Error('the server does not confirm the subscription');
    return feed;
  } catch (error) {
    feed.stop();
    throw error;
  }
}
