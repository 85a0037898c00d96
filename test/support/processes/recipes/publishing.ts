import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { Kafka, logLevel } from 'kafkajs';
import { openSqliteEventStore } from '../../../../infra/sqlite/eventStore/eventStore.ts';
import { toPublicEvents } from '../../../../shared/publicEvents/toPublicEvents.ts';
import {
  agentCreated,
  agentUpdated,
  sessionStarted,
  toolCalled,
  turnCompleted,
  turnStarted,
} from '../../builders/events.ts';
import { untilTopicsExist } from '../../servers/kafka/kafkaTopics.ts';
import { relayToKafka, topicsOf, uniquePrefix, type TestRelay } from '../../servers/kafka/relay.ts';
import { appendTo } from '../../stores/projections/projector.ts';
import { temporaryFolder } from '../../stores/sqlite/sqliteEventStore.ts';

/** An event as a recipe stores it. */
export interface StoredByRecipe {
  id: string;
  key: string;
  revision: number;
  type: string;
  data: unknown;
}

/** What a recipe is told by its environment. */
export interface RecipeEnvironment {
  KAFKA_BROKERS: string;
  KAFKA_AGENTS_TOPIC: string;
  KAFKA_SESSIONS_TOPIC: string;
  KAFKA_GROUP: string;
}

const MOST_OF_A_STREAM = 100;

/** A log, and a relay that publishes it to topics of its own once it is started. */
export async function preparePublishing(brokers: string) {
  const prefix = uniquePrefix();
  const folder = await temporaryFolder();
  const log = await openSqliteEventStore({ folder });
  const topics = topicsOf(prefix);
  const streams: string[] = [];
  let relay: TestRelay | undefined;
  return {
    env: {
      KAFKA_BROKERS: brokers,
      KAFKA_AGENTS_TOPIC: topics.agents,
      KAFKA_SESSIONS_TOPIC: topics.sessions,
      KAFKA_GROUP: `${prefix}.recipe`,
    } satisfies RecipeEnvironment,
    /** Starts the relay; resolves when it has made the topics. */
    async start(): Promise<void> {
      relay = relayToKafka(brokers, prefix, log);
      await untilTopicsExist(brokers, Object.values(topics));
    },
    /** Appends so many agents and as many sessions, whose texts have all kinds of characters. */
    async append(count: number): Promise<void> {
      for (let added = 0; added < count; added += 1) {
        const index = streams.length / 2;
        const [agent, session] = [`agent_${index}`, `session_${index}`];
        streams.push(`agent-${agent}`, `session-${session}`);
        await appendTo(log, `agent-${agent}`, [
          agentCreated(),
          agentUpdated({ instruction: 'Zwölf \u0000 "𝄞"\n' }),
        ]);
        await appendTo(log, `session-${session}`, [
          sessionStarted(agent),
          turnStarted(1),
          toolCalled(1),
          turnCompleted(1, { output: 'Größer als 12 \u0000' }),
        ]);
      }
    },
    /** What a consumer has to have seen, by key, in the order of each. */
    async published(): Promise<Map<string, StoredByRecipe[]>> {
      const events = await Promise.all(
        streams.map((stream) =>
          log.readStream(stream, { direction: 'forwards', limit: MOST_OF_A_STREAM }),
        ),
      );
      return byKey(
        toPublicEvents(events.flat()).map(({ id, key, revision, type, data }) => {
          return { id, key, revision, type, data };
        }),
      );
    },
    /** Leaves messages in both topics that were never committed. */
    async abortSome(): Promise<void> {
      const kafka = new Kafka({ brokers: brokers.split(','), logLevel: logLevel.NOTHING });
      const producer = kafka.producer({
        transactionalId: `${prefix}.aborting`,
        idempotent: true,
        maxInFlightRequests: 1,
      });
      await producer.connect();
      try {
        const transaction = await producer.transaction();
        for (const topic of Object.values(topics)) {
          const headers = {
            ce_id: randomUUID(),
            ce_streamrevision: '0',
            ce_type: 'turnlog.agent.created.v1',
          };
          const messages = [{ key: 'agent_aborted', value: '{}', headers }];
          await transaction.send({ topic, messages });
        }
        await transaction.abort();
      } finally {
        await producer.disconnect();
      }
    },
    async close(): Promise<void> {
      await relay?.close();
      await log.close();
      await rm(folder, { recursive: true });
    },
  };
}

/** Events by their keys, in the order in which they are given. */
export function byKey(events: readonly StoredByRecipe[]): Map<string, StoredByRecipe[]> {
  const found = new Map<string, StoredByRecipe[]>();
  for (const event of events) found.set(event.key, [...(found.get(event.key) ?? []), event]);
  return found;
}
