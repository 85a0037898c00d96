import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from '@jest/globals';
import { agentCreated } from '../../../../support/builders/events.ts';
import { positionOf, recordHistory } from '../../../../support/builders/history.ts';
import { createMemoryTopics } from '../../../../support/fakes/memoryTopics.ts';
import { relayTo, type TestRelay } from '../../../../support/servers/kafka/relay.ts';
import { fixedLog, type FixedLog } from '../../../../support/fakes/fixedLog.ts';
import { skipPauses } from '../../../../support/fakes/jumpingClock.ts';

skipPauses();

const TAKE_OVER_MS = 300;

const { record } = recordHistory();
const EVENT = record({ stream: 'agent-agent_0' }, agentCreated());
const log = fixedLog([EVENT]);

let relay: TestRelay;
afterEach(() => relay.close());

/** Starts a relay to topics in memory; returns what they hold. */
function start(over: FixedLog) {
  const { state, createPublisher } = createMemoryTopics();
  relay = relayTo(createPublisher().publisher, over, { takeOverMs: TAKE_OVER_MS });
  return state;
}

const untilRefused = async (): Promise<string> => {
  for (;;) {
    const { state, reason } = await relay.health();
    if (state === 'retrying') return reason ?? '';
    await sleep(100);
  }
};

test('a publisher that does not close does not keep the relay from closing', async () => {
  const { createPublisher } = createMemoryTopics();
  const { publisher } = createPublisher();
  relay = relayTo({ ...publisher, close: () => new Promise(() => undefined) }, log);
  await relay.close();
});

test('an idle relay shows life as long as its log answers, and says so when it does not any more', async () => {
  let silent = false;
  const topics = start({
    ...log,
    head: () => (silent ? new Promise(() => undefined) : log.head()),
  });
  while (topics.beats < 2) await sleep(100);
  silent = true;
  await sleep(TAKE_OVER_MS);
  const { beats } = topics;
  expect(await untilRefused()).toContain('has not answered');
  expect(topics.beats).toBe(beats);
  expect(topics.published).toHaveLength(1);
});

test('a relay whose subscription misses what its log has shows no life, and says so', async () => {
  const topics = start({ ...log, head: async () => positionOf(99) });
  expect(await untilRefused()).toContain('delivers nothing after');
  expect([topics.beats, topics.published.length]).toEqual([0, 1]);
});

test('a relay that only gets events of others shows life', async () => {
  const topics = start({
    ...log,
    async *subscribe(options) {
      for await (const batch of log.subscribe(options)) {
        yield batch;
        for (let place = 10; !options.signal.aborted; place += 1) {
          await sleep(200);
          yield { ...batch, events: [], position: positionOf(place) };
        }
      }
    },
  });
  while (topics.beats < 3) await sleep(100);
  expect(topics.published).toHaveLength(1);
  expect((await relay.health()).state).toBe('relaying');
});
