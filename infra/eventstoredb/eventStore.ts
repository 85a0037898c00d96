import type { StoreLogger } from './logger.ts';
import type { EventStore } from '../../shared/ports/eventStore.ts';
import { createAppend } from './append.ts';
import { createConnections } from './connections.ts';
import { createKnownEvents } from './knownEvents.ts';
import { createReads } from './read.ts';
import { createRetrying } from './retry.ts';
import { createSubscribe } from './subscribe.ts';

interface EventStoreDbOptions {
  /** `esdb://` or `esdb+discover://`, with credentials, TLS and node preference. */
  connectionString: string;
  logger?: StoreLogger;
  /** How long an append or a read is tried, in milliseconds; default 10 s. */
  deadlineMs?: number;
}

/**
 * The event store in EventStoreDB (23.10 or later) or KurrentDB. Opens without waiting for the
 * server, which may be away.
 * Errors: `configuration_invalid` when the text is not a connection string.
 */
export async function openEventStoreDb({
  connectionString,
  logger,
  deadlineMs = 10_000,
}: EventStoreDbOptions): Promise<EventStore> {
  const connections = createConnections(connectionString, logger);
  const retrying = createRetrying(connections, deadlineMs);
  const known = createKnownEvents();
  const reads = createReads({ deadlineMs, connections, retrying, known });
  const append = createAppend({
    deadlineMs,
    connections,
    retrying,
    known,
    readStream: reads.readStream,
  });
  const accepted = new Set<Promise<unknown>>();
  let closing: Promise<void> | undefined;

  async function close(): Promise<void> {
    await Promise.allSettled(accepted);
    connections.close();
  }

  return {
    append(stream, expected, events) {
      const appending = append(stream, expected, events);
      accepted.add(appending);
      const forget = () => accepted.delete(appending);
      appending.then(forget, forget);
      return appending;
    },
    ...reads,
    subscribe: createSubscribe({ connections, known, deadlineMs, log: reads, logger }),
    trouble: connections.trouble,
    close: () => (closing ??= close()),
  };
}
