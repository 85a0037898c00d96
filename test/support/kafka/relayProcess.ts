/**
 * A relay in a process of its own, to be killed: `<data folder> <brokers> <prefix of the topics>`.
 * Writes a line for every state.
 */
import { writeSync } from 'node:fs';
import { openKafkaPublisher } from '../../../infra/kafka/publisher.ts';
import { openSqliteEventLog } from '../../../infra/sqlite/eventStoreLog.ts';
import { startRelay } from '../../../services/relay/start.ts';
import { publisherOptions } from './relay.ts';

const [folder = '', brokers = '', prefix = ''] = process.argv.slice(2);
const say = (fields: object, message: string): void =>
  void writeSync(1, `${message} ${JSON.stringify(fields)}\n`);
const relay = startRelay({
  log: openSqliteEventLog({ folder }),
  publisher: openKafkaPublisher(publisherOptions(brokers, prefix)),
  startAfter: undefined,
  startIsStated: false,
  takeOverMs: 300,
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
