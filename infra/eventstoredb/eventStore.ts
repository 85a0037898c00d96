import type { EventStore } from '../../shared/ports/eventStore.ts';
import { createAppend } from './append/append.ts';
import { createRecentEventIds } from './append/recentEventIds.ts';
import { createCallWithRetry } from './connection/callRetry.ts';
import { createConnectionManager } from './connection/connectionManager.ts';
import type { StoreLogger } from './connection/troubleLog.ts';
import { createEventStoreReader } from './read/reader.ts';
import { createSubscribe } from './subscribe/subscribe.ts';

interface EventStoreDbOptions {
  /** `esdb://` or `esdb+discover://`, with credentials, TLS and node preference. */
  connectionString: string;
  logger?: StoreLogger;
  /**
   * How long an append or a read is tried, in milliseconds; default 10 s. A request may have less
   * time left (`withWaitBudget`).
   */
  deadlineMs?: number;
}

/**
 * Opens an event store in EventStoreDB (23.10 or later) or KurrentDB. Does not wait for the server.
 * Throws `configuration_invalid` for an invalid connection string.
 */
export async function openEventStoreDb({
  connectionString,
  logger,
  deadlineMs = 10_000,
}: EventStoreDbOptions): Promise<EventStore> {
  const connections = createConnectionManager(connectionString, logger, deadlineMs);
  const callWithRetry = createCallWithRetry(connections, deadlineMs);
  const recentEventIds = createRecentEventIds();
  const dependencies = { deadlineMs, connections, callWithRetry, recentEventIds };
  const reader = createEventStoreReader(dependencies);
  const append = createAppend({ ...dependencies, ...reader });
  const pendingAppends = new Set<Promise<unknown>>();
  let closing: Promise<void> | undefined;

  async function close(): Promise<void> {
    await Promise.allSettled(pendingAppends);
    connections.close();
  }

  return {
    append(stream, expected, events) {
      const appending = append(stream, expected, events);
      pendingAppends.add(appending);
      const remove = () => pendingAppends.delete(appending);
      appending.then(remove, remove);
      return appending;
    },
    ...reader,
    subscribe: createSubscribe({ connections, recentEventIds, deadlineMs, log: reader, logger }),
    trouble: connections.trouble,
    close: () => (closing ??= close()),
  };
}
