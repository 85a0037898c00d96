import { rm } from 'node:fs/promises';
import { containers } from '../../processes/containers.ts';
import { startEventStoreDbNode } from '../eventstoredb-node/index.ts';
import { temporaryFolder } from '../../stores/sqlite/sqliteEventStore.ts';

export interface EventStoreDbServer {
  connectionString: string;
  close: () => Promise<void>;
}

export const EVENTSTOREDB_IMAGE = 'kurrentplatform/kurrentdb:26.1.0';
const PORT = 2113;
const START_TIMEOUT_MS = 120_000;

/**
 * A server in a container; undefined where there is no engine, or the engine does not have the
 * image.
 */
async function startContainer(): Promise<EventStoreDbServer | undefined> {
  // The helper that cleans up after a crash is an image as well, and would be fetched.
  process.env['TESTCONTAINERS_RYUK_DISABLED'] ??= 'true';
  const library = await containers().catch(() => undefined);
  if (!library) return undefined;
  const { GenericContainer, getContainerRuntimeClient, ImageName, Wait } = library;
  try {
    const engine = await getContainerRuntimeClient();
    if (!(await engine.image.exists(ImageName.fromString(EVENTSTOREDB_IMAGE)))) return undefined;
  } catch {
    return undefined;
  }
  const container = await new GenericContainer(EVENTSTOREDB_IMAGE)
    .withEnvironment({
      KURRENTDB_INSECURE: 'true',
      KURRENTDB_CLUSTER_SIZE: '1',
      KURRENTDB_RUN_PROJECTIONS: 'None',
      KURRENTDB_MEM_DB: 'true',
    })
    .withExposedPorts(PORT)
    .withWaitStrategy(Wait.forHttp('/health/live', PORT).forStatusCode(204))
    .withStartupTimeout(START_TIMEOUT_MS)
    .start();
  return {
    connectionString: `esdb://${container.getHost()}:${container.getMappedPort(PORT)}?tls=false`,
    close: async () => void (await container.stop()),
  };
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
 * A server to run a suite against: the one that EVENTSTOREDB_URL names, else a real one in a
 * container, else the node that stands in for it. A server of EVENTSTOREDB_URL is left as it is,
 * with the streams that the suite wrote.
 */
export async function startEventStoreDbServer(): Promise<EventStoreDbServer> {
  const connectionString = process.env['EVENTSTOREDB_URL'];
  if (connectionString) return { connectionString, close: async () => undefined };
  return (await startContainer()) ?? startNode();
}
