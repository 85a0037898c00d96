import type { ReadReq, ReadResp } from '@eventstore/db-client/generated/streams_pb.js';
import type { EventStore, Position, ReadOptions, StoredEvent } from '../../shared/ports/eventStore.ts';
import { openReadCall } from './clientInternals.ts';
import type { Connections } from './connection.ts';
import type { KnownEvents } from './knownEvents.ts';
import { lastEventsRequest, readStreamRequest } from './readRequests.ts';
import type { Attempt, Retrying } from './retry.ts';
import { isStreamDeleted } from './serverErrors.ts';
import { toStoredEvent } from './storedEvent.ts';

type Recorded = ReadResp.ReadEvent.RecordedEvent;

interface Dependencies {
  connections: Connections;
  retrying: Retrying;
  known: KnownEvents;
}

/** How many of the last events are fetched to find one that is ours. */
const LAST_EVENTS = 16;

/** Reads of one stream, and the end of the log. Errors: `store_unavailable`. */
export function createReads({ connections, retrying, known }: Dependencies): Pick<EventStore, 'readStream' | 'head'> {
  const { requiresLeader } = connections;

  async function collect(request: ReadReq, { connection: { client, lost }, heard }: Attempt): Promise<Recorded[]> {
    const call = await openReadCall({ client, requiresLeader, signal: lost }, request);
    const events: Recorded[] = [];
    const cancel = () => call.cancel();
    lost.addEventListener('abort', cancel, { once: true });
    try {
      await new Promise<void>((resolve, reject) => {
        call.on('data', (response) => {
          heard();
          const event = response.getEvent()?.getEvent();
          if (event) events.push(event);
        });
        call.on('error', reject);
        call.on('end', resolve);
      });
    } catch (error) {
      if (!isStreamDeleted(error)) throw error;
    } finally {
      lost.removeEventListener('abort', cancel);
    }
    return events;
  }

  async function readStream(stream: string, options: ReadOptions): Promise<StoredEvent[]> {
    const events: StoredEvent[] = [];
    let next = options;
    for (;;) {
      const page = await retrying((attempt) => collect(readStreamRequest(stream, next), attempt));
      events.push(...page.map(toStoredEvent).filter((event) => event !== undefined));
      const last = page.at(-1);
      // Events of others in the stream are left out; more of what was asked for may lie beyond them.
      if (last === undefined || page.length < next.limit || events.length >= options.limit) break;
      const from = Number(last.getStreamRevision()) + (options.direction === 'forwards' ? 1 : -1);
      if (from < 0) break;
      next = { ...options, from, limit: options.limit - events.length };
    }
    known.note(events);
    return events;
  }

  async function head(): Promise<Position | undefined> {
    for (let limit = LAST_EVENTS; ; limit *= 2) {
      const page = await retrying((attempt) => collect(lastEventsRequest(limit), attempt));
      const last = page.map(toStoredEvent).find((event) => event !== undefined);
      if (last || page.length < limit) return last?.position;
    }
  }

  return { readStream, head };
}
