/**
 * How much the relay publishes when requests fail: `node test/bench/faultyKafka.ts [percent]`. One
 * in two of them has arrived all the same.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocalBroker } from '../../infra/local/kafka/localBroker.ts';
import { openSqliteEventStore } from '../../infra/sqlite/eventStore/eventStore.ts';
import { startFaultyProxy } from '../support/servers/kafka/faultyProxy.ts';
import { relayToKafka, uniquePrefix } from '../support/servers/kafka/relay.ts';
import { appendAgents } from '../support/stores/projections/projector.ts';
import { temporaryFolder } from '../support/stores/sqlite/sqliteEventStore.ts';

const AGENTS = 20_000;
const LIMIT_MS = 60_000;
const percent = Number(process.argv[2] ?? 6);

const folder = await temporaryFolder();
const behind = { brokers: '' };
let faulty = false;
const proxy = await startFaultyProxy(
  () => behind.brokers,
  () => {
    if (!faulty || Math.random() * 100 >= percent) return 'passed';
    return Math.random() < 0.5 ? 'lost' : 'unanswered';
  },
);
const broker = await createLocalBroker({
  folder: join(folder, 'kafka'),
  advertised: proxy.address,
});
behind.brokers = broker.brokers;
await broker.start();
const log = await openSqliteEventStore({ folder });
const head = await appendAgents(log, 0, AGENTS, 1);
faulty = true;
const began = performance.now();
const relay = relayToKafka(proxy.address, uniquePrefix(), log, { takeOverMs: 10_000 });
let health = await relay.health();
while (health.position !== head && performance.now() - began < LIMIT_MS) {
  await sleep(20);
  health = await relay.health();
}
const seconds = (performance.now() - began) / 1_000;
const published = Number(health.position ?? 0);
process.stdout.write(
  `${percent} % faults: ${published} events in ${seconds.toFixed(1)} s, ${Math.round(published / seconds)} events/s, ${proxy.faults()} faults, ${relay.lines.filter(({ level }) => level === 'warn').length} failures of the relay\n`,
);
faulty = false;
await relay.close();
await log.close();
await broker.stop();
await proxy.close();
await rm(folder, { recursive: true });
