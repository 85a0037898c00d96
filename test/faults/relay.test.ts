import { spawn, type ChildProcess } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createLocalBroker, type LocalBroker } from '../../infra/local/kafka/localBroker.ts';
import { openSqliteEventStore } from '../../infra/sqlite/eventStore/eventStore.ts';
import type { EventStore } from '../../shared/ports/eventStore.ts';
import { collectFrom, type Received } from '../support/servers/kafka/kafkaConsumer.ts';
import { orSkip } from '../support/servers/kafka/kafkaServer.ts';
import { byKey, logByKey } from '../support/servers/kafka/logByKey.ts';
import { untilTopicsExist } from '../support/servers/kafka/kafkaTopics.ts';
import { agentId, appendTo } from '../support/stores/projections/projector.ts';
import {
  agentCreated,
  agentUpdated,
  sessionStarted,
  toolCalled,
  turnCompleted,
  turnStarted,
} from '../support/builders/events.ts';
import { topicsOf, uniquePrefix } from '../support/servers/kafka/relay.ts';
import { temporaryFolder } from '../support/stores/sqlite/sqliteEventStore.ts';
import { size } from '../support/jest/size.ts';

const KILLS = size({ small: 9, full: 60 });
/** Each of an agent of 2 events and a session of 8. */
const PAIRS_PER_KILL = 150;
const EVENTS_PER_PAIR = 10;
const RELAY_PROCESS = fileURLToPath(
  new URL('../support/servers/kafka/relayProcess.ts', import.meta.url),
);
const TIME_LIMIT_MS = size({ small: 900_000, full: 2_400_000 });

const folder = await temporaryFolder();
const broker: LocalBroker | undefined = await orSkip(() =>
  createLocalBroker({ folder: join(folder, 'kafka') }),
);
const onKafka = broker ? test : test.skip;
const prefix = uniquePrefix();
let store: EventStore;

beforeAll(async () => {
  store = await openSqliteEventStore({ folder });
});

afterAll(async () => {
  await store.close();
  await broker?.stop();
  await rm(folder, { recursive: true });
});

const spawnRelay = (brokers: string): ChildProcess =>
  spawn(process.execPath, [RELAY_PROCESS, folder, brokers, prefix], { stdio: 'ignore' });

async function kill(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

async function appendPairs(from: number): Promise<void> {
  const agents = Array.from({ length: PAIRS_PER_KILL }, (_, index) => agentId(from + index));
  await Promise.all(
    agents.map(async (agent) => {
      await appendTo(store, `agent-${agent}`, [agentCreated(), agentUpdated({ name: 'New' })]);
      await appendTo(store, `session-${agent.replace('agent', 'session')}`, [
        sessionStarted(agent),
        turnStarted(1),
        toolCalled(1),
        turnCompleted(1),
        turnStarted(2),
        turnCompleted(2),
        turnStarted(3),
        turnCompleted(3),
      ]);
    }),
  );
}

onKafka(
  'consumers see every event once and in order while two relays compete and relays and broker are killed again and again',
  async () => {
    if (!broker) return;
    await broker.start();
    const relays = [spawnRelay(broker.brokers), spawnRelay(broker.brokers)];
    await appendPairs(0);
    const topics = Object.values(topicsOf(prefix));
    await untilTopicsExist(broker.brokers, topics);
    const live = await collectFrom(broker.brokers, topics);

    const killed = { relay: 0, broker: 0 };
    for (let round = 1; round <= KILLS; round += 1) {
      await Promise.all([appendPairs(round * PAIRS_PER_KILL), sleep(randomInt(1_500))]);
      const victim = round % 3;
      if (victim === 2) {
        await broker.kill();
        killed.broker += 1;
        await sleep(randomInt(500));
        await broker.start();
      } else {
        await kill(relays[victim]!);
        killed.relay += 1;
        await sleep(randomInt(500));
        relays[victim] = spawnRelay(broker.brokers);
      }
    }

    const expected = await logByKey(store);
    const total = (KILLS + 1) * PAIRS_PER_KILL * EVENTS_PER_PAIR;
    expect([...expected.values()].flat()).toHaveLength(total);
    expect(killed.relay + killed.broker).toBe(KILLS);
    const ids = (received: readonly Received[]): number =>
      new Set(received.map(({ headers }) => headers['ce_id'])).size;
    await live.until((received) => received.length >= total && ids(received) >= total);
    await Promise.all(relays.map(kill));

    const fresh = await collectFrom(broker.brokers, topics);
    await fresh.until((received) => received.length >= total && ids(received) >= total);
    expect(fresh.received).toHaveLength(total);
    expect(byKey(fresh.received)).toEqual(expected);
    expect(byKey(live.received)).toEqual(expected);
    process.stderr.write(
      `${total} events relayed; killed: relay ${killed.relay}, broker ${killed.broker} times (Kafka ${broker.version})\n`,
    );
    await Promise.all([live.close(), fresh.close()]);
  },
  TIME_LIMIT_MS,
);
