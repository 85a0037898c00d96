import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from '@jest/globals';
import type { Checkpoint } from '../../../../../shared/ports/eventStore.ts';
import type { Publisher } from '../../../../../shared/publicEvents/publisher.ts';
import { agentCreated } from '../../../../support/events/events.ts';
import { positionOf, recordHistory } from '../../../../support/events/history.ts';
import { relayTo, type TestRelay } from '../../../../support/kafka/relay.ts';
import { fixedLog, type FixedLog } from '../../../../support/store/fixedLog.ts';

const TAKE_OVER_MS = 300;

const { record } = recordHistory();
const EVENT = record({ stream: 'agent-agent_0' }, agentCreated());
const log = fixedLog([EVENT]);

let relay: TestRelay;
afterEach(() => relay.close());

/** A relay to a publisher that counts. */
function start(over: FixedLog) {
  const counted = { beats: 0, published: 0 };
  let checkpoint: Checkpoint | undefined;
  const publisher: Publisher = {
    takeOver: async () => ({
      checkpoint,
      async publish(events, reached) {
        counted.published += events.length;
        checkpoint = reached;
      },
      beat: async () => void (counted.beats += 1),
      visitPublished: async () => undefined,
      parked: () => ({ count: 0, keys: [] }),
      close: async () => undefined,
    }),
    checkpoint: async () => checkpoint,
    lost: async () => undefined,
    activity: async () => String(counted.beats + counted.published),
    isEmpty: async () => counted.published === 0,
    close: async () => undefined,
  };
  relay = relayTo(publisher, over, { takeOverMs: TAKE_OVER_MS });
  return counted;
}

const untilRefused = async (): Promise<string> => {
  for (;;) {
    const { state, reason } = await relay.health();
    if (state === 'retrying') return reason ?? '';
    await sleep(10);
  }
};

test('an idle relay shows life as long as its log answers, and says so when it does not any more', async () => {
  let silent = false;
  const counted = start({
    ...log,
    head: () => (silent ? new Promise(() => undefined) : log.head()),
  });
  while (counted.beats < 2) await sleep(10);
  silent = true;
  await sleep(TAKE_OVER_MS);
  const { beats } = counted;
  expect(await untilRefused()).toContain('has not answered');
  expect(counted.beats).toBe(beats);
  expect(counted.published).toBe(1);
});

test('a relay whose subscription misses what its log has shows no life, and says so', async () => {
  const counted = start({ ...log, head: async () => positionOf(99) });
  expect(await untilRefused()).toContain('brings nothing after');
  expect(counted).toEqual({ beats: 0, published: 1 });
});

test('a relay that only gets events of others shows life', async () => {
  const counted = start({
    ...log,
    async *subscribe(options) {
      for await (const batch of log.subscribe(options)) {
        yield batch;
        for (let place = 10; !options.signal.aborted; place += 1) {
          await sleep(20);
          yield { ...batch, events: [], position: positionOf(place) };
        }
      }
    },
  });
  while (counted.beats < 3) await sleep(10);
  expect(counted.published).toBe(1);
  expect((await relay.health()).state).toBe('relaying');
});
