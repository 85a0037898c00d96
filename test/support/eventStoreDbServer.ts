import { rm } from 'node:fs/promises';
import { startEventStoreDbNode } from './eventstoredb-node/index.ts';
import { temporaryFolder } from './sqliteEventStore.ts';

export interface EventStoreDbServer {
  connectionString: string;
  close: () => Promise<void>;
}

/** The version of the image that compose.yaml runs. */
const IMAGE = 'eventstore/eventstore:24.10.0-bookworm-slim';
const PORT = 2113;
const START_TIMEOUT_MS = 120_000;

/** A server in a container; undefined where there is no engine, or no image and no registry to fetch it from. */
async function startContainer(): Promise<EventStoreDbServer | undefined> {
  const { GenericContainer, Wait } = await import('testcontainers');
  try {
    const container = await new GenericContainer(IMAGE)
      .withEnvironment({ EVENTSTORE_INSECURE: 'true', EVENTSTORE_CLUSTER_SIZE: '1', EVENTSTORE_RUN_PROJECTIONS: 'None', EVENTSTORE_MEM_DB: 'true' })
      .withExposedPorts(PORT)
      .withWaitStrategy(Wait.forHttp('/health/live', PORT).forStatusCode(204))
      .withStartupTimeout(START_TIMEOUT_MS)
      .start();
    return {
      connectionString: `esdb://${container.getHost()}:${container.getMappedPort(PORT)}?tls=false`,
      close: async () => void (await container.stop()),
    };
  } catch {
    return undefined;
  }
}

async function startNode(): Promise<EventStoreDbServer> {
  const folder = await temporaryFolder();
  const node = await startEventStoreDbNode({ folder });
  return {
    connectionString: node.connectionString,
    async close() {
      await node.close();
      await rm(folder, { recursive: true });
    },
  };
}

/**
 * A server to run a suite against: the one that EVENTSTOREDB_URL names, else a real one in a container, else the node that
 * stands in for it. A server of EVENTSTOREDB_URL is left as it is, with the streams that the suite wrote.
 */
export async function startEventStoreDbServer(): Promise<EventStoreDbServer> {
  const connectionString = process.env['EVENTSTOREDB_URL'];
  if (connectionString) return { connectionString, close: async () => undefined };
  return (await startContainer()) ?? startNode();
}
