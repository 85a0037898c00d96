import { rm } from 'node:fs/promises';
import { afterAll, afterEach, beforeEach, describe } from '@jest/globals';
import { openSqliteEventStore } from '../../../../infra/sqlite/eventStore/eventStore.ts';
import type { EventStore } from '../../../../shared/ports/eventStore.ts';
import { temporaryFolder } from '../../stores/sqlite/sqliteEventStore.ts';
import { startKafkaServer } from './kafkaServer.ts';
import { uniquePrefix } from './relay.ts';

/** What a test of the relay has: a log in its own folder, and a prefix for its own topics. */
export interface RelayFixture {
  folder: string;
  log: EventStore;
  prefix: string;
  /** Closed after the test, before the log. */
  closing: Array<() => Promise<void>>;
}

/**
 * A broker for the suites of a file, and a fixture that is set anew for each of their tests.
 * `onKafka` skips its suite where no broker can be had.
 */
export async function setUpRelayTests() {
  const kafka = await startKafkaServer();
  const fixture = { closing: [] } as unknown as RelayFixture;
  beforeEach(async () => {
    fixture.folder = await temporaryFolder();
    fixture.log = await openSqliteEventStore({ folder: fixture.folder });
    fixture.prefix = uniquePrefix();
  });
  afterEach(async () => {
    await Promise.all(fixture.closing.splice(0).map((close) => close()));
    await fixture.log.close();
    await rm(fixture.folder, { recursive: true });
  });
  afterAll(async () => kafka?.close());
  return { fixture, brokers: kafka?.brokers ?? '', onKafka: kafka ? describe : describe.skip };
}
