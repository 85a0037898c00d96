import { rm } from 'node:fs/promises';
import { createLocalBroker } from '../../../../infra/local/kafka/localBroker.ts';
import { containers } from '../../processes/containers.ts';
import { freePort } from '../../processes/freePort.ts';
import { temporaryFolder } from '../../stores/sqlite/sqliteEventStore.ts';

interface KafkaServer {
  /** For KAFKA_BROKERS. */
  brokers: string;
  /** What it is, for people. */
  name: string;
  close: () => Promise<void>;
}

export const KAFKA_IMAGE = 'apache/kafka:4.1.2';
const PORT = 9092;

/**
 * A broker in a container; throws where there is no engine, or no image and no registry to fetch it
 * from.
 */
async function startContainer(): Promise<KafkaServer> {
  const { GenericContainer, Wait } = await containers();
  const port = await freePort();
  const container = await new GenericContainer(KAFKA_IMAGE)
    .withEnvironment({
      KAFKA_NODE_ID: '1',
      KAFKA_PROCESS_ROLES: 'broker,controller',
      KAFKA_CONTROLLER_QUORUM_VOTERS: '1@localhost:9093',
      KAFKA_CONTROLLER_LISTENER_NAMES: 'CONTROLLER',
      KAFKA_LISTENERS: `PLAINTEXT://:${PORT},CONTROLLER://localhost:9093`,
      KAFKA_ADVERTISED_LISTENERS: `PLAINTEXT://127.0.0.1:${port}`,
      KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
      KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR: '1',
      KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR: '1',
      KAFKA_TRANSACTION_STATE_LOG_MIN_ISR: '1',
      KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS: '0',
    })
    .withExposedPorts({ container: PORT, host: port })
    .withWaitStrategy(Wait.forLogMessage(/Kafka Server started/))
    .start();
  return {
    brokers: `127.0.0.1:${port}`,
    name: KAFKA_IMAGE,
    close: async () => void (await container.stop()),
  };
}

async function startLocal(): Promise<KafkaServer> {
  const folder = await temporaryFolder();
  const broker = await createLocalBroker({ folder });
  await broker.start();
  return {
    brokers: broker.brokers,
    name: `local Kafka ${broker.version}`,
    async close() {
      // Nothing of it is kept, and an orderly end takes its time.
      await broker.kill();
      await rm(folder, { recursive: true });
    },
  };
}

/**
 * Runs a suite only where `get` succeeds. Where it does not, one line says why; with CI=true that
 * is a failure.
 */
export async function orSkip<Server>(get: () => Promise<Server>): Promise<Server | undefined> {
  try {
    return await get();
  } catch (error) {
    const why = `Kafka tests are skipped: no KAFKA_BROKERS, no container engine, and no local broker (${(error as Error).message.split('\n')[0] ?? ''}). Install Java 17 and Maven, or set KAFKA_BROKERS=host:port.`;
    if (process.env['CI'] === 'true') throw new Error(why, { cause: error });
    process.stderr.write(`${why}\n`);
    return undefined;
  }
}

/** A real broker: the one that KAFKA_BROKERS names, else one in a container, else a local one. */
export const startKafkaServer = (): Promise<KafkaServer | undefined> =>
  orSkip(async () => {
    const brokers = process.env['KAFKA_BROKERS'];
    if (brokers) return { brokers, name: 'KAFKA_BROKERS', close: async () => undefined };
    return startContainer().catch(startLocal);
  });
