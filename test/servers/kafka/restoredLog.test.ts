/** A relay to a real broker whose log was restored from a backup older than its checkpoint. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from '@jest/globals';
import { toPublicEvents } from '../../../shared/publicEvents/toPublicEvents.ts';
import type { EventStore } from '../../../shared/ports/eventStore.ts';
import { changeableLog, KINDS_OF_LOGS } from '../../support/stores/changedLogs/logs.ts';
import { size } from '../../support/jest/size.ts';
import { collectFrom, type Received } from '../../support/servers/kafka/kafkaConsumer.ts';
import { startKafkaServer } from '../../support/servers/kafka/kafkaServer.ts';
import { untilTopicsExist } from '../../support/servers/kafka/kafkaTopics.ts';
import { topicsOf, uniquePrefix } from '../../support/servers/kafka/relay.ts';
import { readLog } from '../../support/servers/postgres/postgresFaults.ts';
import { appendAgents } from '../../support/stores/projections/projector.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';
import { declareRestored } from '../../support/stores/declareRestored.ts';

const RELAY = fileURLToPath(
  new URL('../../support/servers/kafka/relayProcess.ts', import.meta.url),
);
const KILLS = size({ small: 3, full: 12 });
const AGENTS = 1_500;
const kafka = await startKafkaServer();
const onKafka = kafka ? describe : describe.skip;
afterAll(async () => kafka?.close());

/** A relay as a process, with all that it has said. */
function startProcess(folder: string, prefix: string): { child: ChildProcess; lines: string[] } {
  const args = [RELAY, folder, kafka!.brokers, prefix];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  return { child, lines };
}

async function kill(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await sleep(20);
}

const idsOf = (received: readonly Received[]): string[] =>
  received.map(({ headers }) => headers['ce_id']!);

/** The ids of each key, in their order. */
function byKey(events: readonly { key: string; id: string }[]): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const { key, id } of events) found.set(key, [...(found.get(key) ?? []), id]);
  return found;
}

const publicIds = async (store: EventStore) => toPublicEvents(await readLog(store));

onKafka('a relay whose log was restored from an older backup', () => {
  test('refuses it, says why, and publishes once it was declared what is missing, each event once, through kills', async () => {
    const folder = await temporaryFolder();
    const prefix = uniquePrefix();
    const topics = Object.values(topicsOf(prefix));
    const log = changeableLog(KINDS_OF_LOGS[0]!, folder);
    await log.use((store) => appendAgents(store, 0, 100, 1));
    const putBack = await log.copy('older');
    const lost = await log.use(async (store) => {
      await appendAgents(store, 100, 200, 1);
      return publicIds(store);
    });
    let relay = startProcess(folder, prefix);
    await untilTopicsExist(kafka!.brokers, topics);
    const consumer = await collectFrom(kafka!.brokers, topics);
    await consumer.until(({ length }) => length === lost.length);
    await kill(relay.child);

    await putBack();
    await log.use((store) => appendAgents(store, 1_000, 1_000 + AGENTS, 1));
    relay = startProcess(folder, prefix);
    await until(() => relay.lines.some((line) => /^health.*accept-restored/.test(line)));
    expect(relay.lines.filter((line) => line.startsWith('health')).at(-1)).toContain('retrying');
    expect(consumer.received).toHaveLength(lost.length);
    await kill(relay.child);

    const declared = await log.use((store) => declareRestored(store));
    const due = await log.use(publicIds);
    for (let count = 0; count < KILLS; count += 1) {
      relay = startProcess(folder, prefix);
      const before = consumer.received.length;
      const done = new Set(idsOf(consumer.received)).size;
      // In the middle of it, at least once: nothing is told of how far it is.
      const enough = consumer.until(({ length }) => length > before || done >= due.length + 200);
      await Promise.race([enough, sleep(8_000)]);
      await kill(relay.child);
    }
    relay = startProcess(folder, prefix);
    await log.use((store) => appendAgents(store, 5_000, 5_010, 1));
    const all = await log.use(publicIds);
    const wanted = new Set(all.map(({ id }) => id));
    await consumer.until(
      (received) => new Set(idsOf(received).filter((id) => wanted.has(id))).size === wanted.size,
    );
    await sleep(500);

    const ids = idsOf(consumer.received);
    expect(new Set(ids).size).toBe(ids.length);
    const there = consumer.received
      .map(({ key, headers }) => ({ key, id: headers['ce_id']! }))
      .filter(({ id }) => wanted.has(id));
    expect(byKey(there)).toEqual(byKey(all));
    const [known, late] = [new Set(lost.map(({ id }) => id)), new Set(due.map(({ id }) => id))];
    // What came while that was done may be marked or not.
    for (const { headers } of consumer.received)
      if (known.has(headers['ce_id']!)) expect(headers['ce_restored']).toBeUndefined();
      else if (late.has(headers['ce_id']!)) expect(headers['ce_restored']).toBe(declared);
    await kill(relay.child);
    await consumer.close();
    await rm(folder, { recursive: true });
  }, 150_000);
});
