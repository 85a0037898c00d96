import type { ReadResp } from '@eventstore/db-client/generated/streams_pb.js';
import type { Position, StoredEvent } from '../../shared/ports/eventStore.ts';
import { openReadCall, type ReadCall } from './clientInternals.ts';
import type { Connection } from './connection.ts';
import { toPosition } from './positions.ts';
import { subscribeRequest } from './readRequests.ts';
import { toStoredEvent } from './storedEvent.ts';

/** One step of the log as a server tells it to a subscription. */
export type Step =
  | { kind: 'event'; event: StoredEvent }
  /** Everything up to here has been considered. */
  | { kind: 'checkpoint'; position: Position }
  /** From now on events come as they are written, until the consumer falls behind. */
  | { kind: 'caught_up' }
  | { kind: 'fell_behind' };

/** One subscription. It is pulled: while nothing is taken no more comes over the wire, and the server waits. */
export interface Feed {
  /** What has arrived and was not taken yet, one at a time. */
  take(): Step | undefined;
  isEmpty(): boolean;
  /** Resolves when there is something to take, or after `timeoutMs`. Rejects once the subscription is over, with what ended it. */
  arrival(timeoutMs?: number): Promise<void>;
  stop(): void;
}

interface FeedOptions {
  after: Position | undefined;
  requiresLeader: boolean;
  /** How long the server may take to confirm the subscription, which it does at once when it is well. */
  confirmationMs: number;
  /** Ends the feed. */
  signal: AbortSignal;
}

function toStep(response: ReadResp): Step | undefined {
  const recorded = response.getEvent()?.getEvent();
  if (recorded) {
    const event = toStoredEvent(recorded);
    return event && { kind: 'event', event };
  }
  const checkpoint = response.getCheckpoint();
  if (checkpoint) {
    return { kind: 'checkpoint', position: toPosition({ commit: BigInt(checkpoint.getCommitPosition()), prepare: BigInt(checkpoint.getPreparePosition()) }) };
  }
  if (response.hasCaughtUp()) return { kind: 'caught_up' };
  return response.hasFellBehind() ? { kind: 'fell_behind' } : undefined;
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

  const arrival = (timeoutMs?: number): Promise<void> =>
    new Promise((resolve, reject) => {
      const timer = timeoutMs === undefined ? undefined : setTimeout(done, timeoutMs);
      function release(): void {
        clearTimeout(timer);
        call.off('readable', done);
        ended.removeEventListener('abort', fail);
      }
      function done(): void {
        release();
        resolve();
      }
      function fail(): void {
        release();
        reject(ended.reason as Error);
      }
      if (ended.aborted) return fail();
      if (call.readableLength > 0) return done();
      ended.addEventListener('abort', fail);
      call.on('readable', done);
    });

  return { take, arrival, isEmpty: () => call.readableLength === 0, stop: () => call.cancel() };
}

/** Subscribes to our streams. Rejects when the call can't be opened, or is not confirmed. */
export async function openFeed({ client, lost, heard }: Connection, { after, requiresLeader, confirmationMs, signal }: FeedOptions): Promise<Feed> {
  const ended = AbortSignal.any([signal, lost]);
  const call = await openReadCall({ client, requiresLeader, signal: ended }, subscribeRequest(after));
  const feed = createFeed(call, ended, heard);
  try {
    await feed.arrival(confirmationMs);
    if (feed.isEmpty()) throw new Error('the server does not confirm the subscription');
    return feed;
  } catch (error) {
    feed.stop();
    throw error;
  }
}
