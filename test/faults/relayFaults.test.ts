import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createLocalBroker } from '../../infra/local/kafka/localBroker.ts';
import { openKafkaPublisher } from '../../infra/kafka/publisher.ts';
import { openSqliteEventStore } from '../../infra/sqlite/eventStore/eventStore.ts';
import type { EventStore, Position } from '../../shared/ports/eventStore.ts';
import { parseConfig } from '../../shared/lib/config/config.ts';
import { resolvesWithin } from '../../shared/lib/time/resolvesWithin.ts';
import { size } from '../support/jest/size.ts';
import {
  startFaultyProxy,
  type Fate,
  type FaultyProxy,
} from '../support/servers/kafka/faultyProxy.ts';
import { collectFrom } from '../support/servers/kafka/kafkaConsumer.ts';
import { orSkip } from '../support/servers/kafka/kafkaServer.ts';
import { byKey, logByKey } from '../support/servers/kafka/logByKey.ts';
import { publisherOptions, topicsOf, uniquePrefix } from '../support/servers/kafka/relay.ts';
import { appendAgents } from '../support/stores/projections/projector.ts';
import { temporaryFolder } from '../support/stores/sqlite/sqliteEventStore.ts';

const RELAY_PROCESS = fileURLToPath(
  new URL('../support/servers/kafka/relayProcess.ts', import.meta.url),
);
const AGENTS_PER_STEP = 20;
/** What operators have who set nothing. */
const { KAFKA_TAKEOVER_MS: TAKEOVER_MS } = parseConfig({});
/** What is promised is 15 s; other suites run beside the small size. */
const PUBLISHED_WITHIN_MS = size({ small: 60_000, full: 15_000 });
const TIME_LIMIT_MS = size({ small: 600_000, full: 1_800_000 });

const folder = await temporaryFolder();
const behind = { brokers: '' };
let fate: () => Fate = () => 'passed';
const proxy: FaultyProxy = await startFaultyProxy(
  () => behind.brokers,
  () => fate(),
);
const broker = await orSkip(() =>
  createLocalBroker({ folder: join(folder, 'kafka'), advertised: proxy.address }),
);
const onKafka = broker ? describe : describe.skip;

const relays = new Set<ChildProcess>();
let place: string;
let store: EventStore;
let prefix: string;
let appended: { agents: number; position: Position | undefined };

beforeAll(async () => {
  behind.brokers = broker?.brokers ?? '';
  await broker?.start();
}, 120_000);
beforeEach(async () => {
  prefix = uniquePrefix();
  place = join(folder, prefix);
  store = await openSqliteEventStore({ folder: place });
  appended = { agents: 0, position: undefined };
});
afterEach(async () => {
  fate = () => 'passed';
  for (const relay of relays) relay.kill('SIGKILL');
  relays.clear();
  await store.close();
});
afterAll(async () => {
  await broker?.stop();
  await proxy.close();
  await rm(folder, { recursive: true });
});

function spawnRelay(takeOverMs: number, ...sick: string[]): ChildProcess {
  const relay = spawn(
    process.execPath,
    [RELAY_PROCESS, place, proxy.address, prefix, String(takeOverMs), ...sick],
    { stdio: ['ignore', 'pipe', 'ignore'] },
  );
  relays.add(relay);
  return relay;
}

/** Resolves at the first line of a process that contains the text. */
async function untilSays(relay: ChildProcess, text: string): Promise<void> {
  const reading = createInterface({ input: relay.stdout! });
  for await (const line of reading) if (line.includes(text)) return;
}

async function append(): Promise<void> {
  const { agents } = appended;
  appended = {
    agents: agents + AGENTS_PER_STEP,
    position: await appendAgents(store, agents, agents + AGENTS_PER_STEP, 2),
  };
}

/** Resolves when the checkpoint is at the end of what was appended. */
async function untilPublished(): Promise<void> {
  const publisher = openKafkaPublisher(publisherOptions(proxy.address, prefix));
  try {
    for (;;) {
      const checkpoint = await publisher.checkpoint().catch(() => undefined);
      if (checkpoint?.position === appended.position) return;
      await sleep(200);
    }
  } finally {
    await publisher.close();
  }
}

async function expectEachOnceInOrder(): Promise<void> {
  for (const relay of relays) {
    const exited = once(relay, 'exit');
    relay.kill('SIGKILL');
    await exited;
  }
  relays.clear();
  const expected = await logByKey(store);
  const total = [...expected.values()].flat().length;
  const consumer = await collectFrom(proxy.address, Object.values(topicsOf(prefix)));
  await consumer.until((received) => received.length >= total);
  await consumer.close();
  expect(consumer.received).toHaveLength(total);
  expect(byKey(consumer.received)).toEqual(expected);
}

onKafka('with two relays', () => {
  test(
    'of which one is sick, the healthy one publishes within 15 s of the sick one’s first failure, and goes on',
    async () => {
      spawnRelay(TAKEOVER_MS);
      await append();
      await untilPublished();
      const sick = spawnRelay(TAKEOVER_MS, 'sick');
      const failing = untilSays(sick, 'The relay failed');
      await append();
      // The sick one takes over, and has something that it can't publish.
      while (!(await resolvesWithin(failing, 100))) await append();
      const began = performance.now();
      await append();
      await untilPublished();
      expect(performance.now() - began).toBeLessThan(PUBLISHED_WITHIN_MS);
      const steps = size({ small: 60, full: 300 });
      for (let step = 0; step < steps; step += 1) {
        await append();
        await sleep(200);
      }
      const ended = performance.now();
      await untilPublished();
      expect(performance.now() - ended).toBeLessThan(PUBLISHED_WITHIN_MS);
      await expectEachOnceInOrder();
    },
    TIME_LIMIT_MS,
  );

  test(
    'whose connections fall silent without an end, each event comes once and in order',
    async () => {
      const wanted = size({ small: 4, full: 20 });
      spawnRelay(2_000);
      spawnRelay(2_000);
      await append();
      await untilPublished();
      for (let silenced = 0; silenced < wanted;) {
        await append();
        silenced += proxy.halfOpen();
        await append();
        await untilPublished();
      }
      await expectEachOnceInOrder();
    },
    TIME_LIMIT_MS,
  );
});

onKafka('with 6 % of the requests lost, or done and not answered', () => {
  test(
    'the relay goes on, and each event comes once and in order',
    async () => {
      fate = () => {
        if (Math.random() >= 0.06) return 'passed';
        return Math.random() < 0.5 ? 'lost' : 'unanswered';
      };
      const before = proxy.faults();
      spawnRelay(10_000);
      const steps = size({ small: 30, full: 300 });
      for (let step = 0; step < steps; step += 1) await append();
      await untilPublished();
      for (let step = 0; step < steps; step += 1) {
        await append();
        await sleep(100);
      }
      await untilPublished();
      expect(proxy.faults() - before).toBeGreaterThan(10);
      fate = () => 'passed';
      await expectEachOnceInOrder();
    },
    TIME_LIMIT_MS,
  );
});
