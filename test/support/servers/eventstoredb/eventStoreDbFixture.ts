import { rm } from 'node:fs/promises';
import { openEventStoreDb } from '../../../../infra/eventstoredb/eventStore.ts';
import type { EventStore } from '../../../../shared/ports/eventStore.ts';
import { startEventStoreDbNode, type EventStoreDbNode } from '../eventstoredb-node/index.ts';
import { temporaryFolder } from '../../stores/sqlite/sqliteEventStore.ts';

export interface NodeAndStore {
  node: EventStoreDbNode;
  store: EventStore;
  close: () => Promise<void>;
}

/** A node of its own with a store on it, for tests that turn the node's fault switches. */
export async function openOnNode({
  deadlineMs = 10_000,
}: { deadlineMs?: number } = {}): Promise<NodeAndStore> {
  const folder = await temporaryFolder();
  const node = await startEventStoreDbNode({ folder });
  const store = await openEventStoreDb({ connectionString: node.connectionString, deadlineMs });
  return {
    node,
    store,
    async close() {
      await store.close();
      await node.close();
      await rm(folder, { recursive: true });
    },
  };
}
