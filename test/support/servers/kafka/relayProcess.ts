/**
 * A relay in a process of its own, to be killed: `<data folder> <brokers> <prefix of the topics>
 * [take-over time in milliseconds] [sick]`. Writes a line for every state. A sick one understands
 * no event.
 */
import { writeSync } from 'node:fs';
import { openKafkaPublisher } from '../../../../infra/kafka/publisher.ts';
import { openSqliteEventLog } from '../../../../infra/sqlite/eventStore/log.ts';
import type { EventLog } from '../../../../shared/ports/eventStore.ts';
import { startRelay } from '../../../../services/followers/relay/start.ts';
import { publisherOptions } from './relay.ts';

const [folder = '', brokers = '', prefix = '', takeOverMs = '300', sick] = process.argv.slice(2);
const say = (fields: object, message: string): void =>
  void writeSync(1, `${message} ${JSON.stringify(fields)}\n`);
const log = openSqliteEventLog({ folder });

/** The log as a release sees it that can't read its events. */
const illegible: EventLog = {
  ...log,
  async *subscribe(options) {
    for await (const batch of log.subscribe(options))
      yield { ...batch, events: batch.events.map((event) => ({ ...event, data: '{}' })) };
  },
};

const relay = startRelay({
  log: sick === undefined ? log : illegible,
  publisher: openKafkaPublisher(publisherOptions(brokers, prefix)),
  startAfter: undefined,
  startIsStated: false,
  takeOverMs: Number(takeOverMs),
  clock: { now: () => Date.now() },
  logger: {
    info: say,
    warn: (fields, message) => say({ err: String((fields as { err?: unknown }).err) }, message),
  },
});
setInterval(
  () =>
    void relay.health().then(
      (health) => say(health, 'health'),
      () => undefined,
    ),
  1_000,
);
