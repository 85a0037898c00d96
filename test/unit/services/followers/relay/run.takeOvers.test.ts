import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { createCheckpoint } from '../../../../../shared/eventlog/identity/logIdentity.ts';
import type { Publication, Publisher } from '../../../../../shared/publicEvents/publisher.ts';
import { agentCreated } from '../../../../support/builders/events.ts';
import { reached, recordHistory } from '../../../../support/builders/history.ts';
import { createMemoryTopics, publisherError } from '../../../../support/fakes/memoryTopics.ts';
import { relayTo } from '../../../../support/servers/kafka/relay.ts';
import { fixedLog, type FixedLog } from '../../../../support/fakes/fixedLog.ts';
import { skipPauses } from '../../../../support/fakes/jumpingClock.ts';

skipPauses();

const TAKE_OVER_MS = 200;

const { record } = recordHistory();
const EVENTS = [0, 1, 2].map((index) => record({ stream: `agent-agent_${index}` }, agentCreated()));

const healthy = fixedLog(EVENTS);
const illegible = fixedLog(EVENTS.map((event) => ({ ...event, data: '{}' })));

function startOn(
  { createPublisher }: ReturnType<typeof createMemoryTopics>,
  log: FixedLog,
  changes: Parameters<typeof relayTo>[2] = {},
) {
  const { publisher, takeOvers } = createPublisher();
  const relay = relayTo(publisher, log, { takeOverMs: TAKE_OVER_MS, ...changes });
  return { ...relay, takeOvers };
}

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await sleep(5);
}

describe('a relay that takes over and gets nowhere', () => {
  test('leaves the field to one that gets on', async () => {
    const topics = createMemoryTopics();
    const well = startOn(topics, healthy);
    await until(async () => (await well.health()).state === 'relaying');
    topics.state.checkpoint = undefined;
    const sick = startOn(topics, illegible);
    await until(async () => (await sick.health()).state === 'retrying');
    await until(async () => (await sick.health()).state === 'standing_by');
    const { count } = sick.takeOvers;
    await sleep(10 * TAKE_OVER_MS);
    expect(sick.takeOvers.count).toBe(count);
    expect((await well.health()).state).toBe('relaying');
    await Promise.all([sick.close(), well.close()]);
  }, 20_000);

  test('pauses for longer than another one needs to take over, and longer each time', async () => {
    const alone = startOn(createMemoryTopics(), illegible);
    await until(() => alone.lines.length >= 3);
    expect(alone.lines.slice(0, 3).map(({ fields }) => fields['retry_in_ms'])).toEqual(
      [2, 4, 8].map((times) => times * TAKE_OVER_MS),
    );
    await alone.close();
  }, 20_000);

  test('is never shown as well in between, and says why', async () => {
    const topics = createMemoryTopics();
    topics.state.isFailing = true;
    const relay = startOn(topics, healthy);
    await until(async () => (await relay.health()).state === 'retrying');
    for (let look = 0; look < 60; look += 1) {
      expect(await relay.health()).toMatchObject({ state: 'retrying', reason: 'It fails.' });
      await sleep(10);
    }
    topics.state.isFailing = false;
    await until(async () => (await relay.health()).state === 'relaying');
    expect(await relay.health()).not.toHaveProperty('reason');
    await relay.close();
  }, 20_000);
});

describe('relays of which each needs longer to take over than the others wait', () => {
  test('stop fencing one another, so that one publishes', async () => {
    const topics = createMemoryTopics();
    const slow = () => {
      const { publisher, takeOvers } = topics.createPublisher();
      const takeOver: typeof publisher.takeOver = async () => {
        const owner = topics.state.owner + 1;
        const publication = await publisher.takeOver();
        for (let waited = 0; waited < 3 * TAKE_OVER_MS; waited += TAKE_OVER_MS / 10) {
          await sleep(TAKE_OVER_MS / 10);
          if (topics.state.owner !== owner) throw publisherError('publisher_fenced');
        }
        return publication;
      };
      const options = { takeOverMs: TAKE_OVER_MS };
      return { ...relayTo({ ...publisher, takeOver }, healthy, options), takeOvers };
    };
    const relays = [slow(), slow()];
    await until(() => topics.state.published.length === EVENTS.length);
    await Promise.all(relays.map((relay) => relay.close()));
  }, 20_000);
});

describe('a standby relay waits', () => {
  /**
   * How long a relay that is fenced again and again stands by before each take-over, in take-over
   * times. `methods` replace those of the publisher and of its publications.
   */
  async function waitsOf(count: number, methods: Partial<Publisher & Publication>) {
    const topics = createMemoryTopics();
    const { publisher } = topics.createPublisher();
    const waits: number[] = [];
    let fencedAt: number | undefined;
    const noteFence = async (call: Promise<unknown>): Promise<void> => {
      await call.catch((error: unknown) => {
        fencedAt = performance.now();
        throw error;
      });
    };
    const relay = relayTo(
      {
        ...publisher,
        ...methods,
        async takeOver() {
          if (fencedAt !== undefined) waits.push((performance.now() - fencedAt) / TAKE_OVER_MS);
          const { takeOver = publisher.takeOver } = methods;
          let publication: Publication | undefined;
          await noteFence(takeOver().then((open) => void (publication = { ...open, ...methods })));
          const { publish } = publication!;
          return {
            ...publication!,
            publish: (...batch) => noteFence(publish(...batch)),
          };
        },
      },
      healthy,
      { takeOverMs: TAKE_OVER_MS },
    );
    await until(() => waits.length >= count);
    await relay.close();
    return waits.slice(0, count);
  }

  /** Rounded down: each time is spread by up to a fifth, and measured a little late. */
  const inSteps = (waits: readonly number[]): number[] =>
    waits.map((wait) => 2 ** Math.floor(Math.log2(wait)));

  test('twice as long after each term without success, however late it notices that it is fenced', async () => {
    const waits = await waitsOf(3, {
      async publish() {
        await sleep(20 * TAKE_OVER_MS);
        throw publisherError('publisher_fenced');
      },
    });
    expect(inSteps(waits)).toEqual([1, 2, 4]);
  }, 20_000);

  test('twice as long each time it is fenced while it takes over, however long ago it has started', async () => {
    const waits = await waitsOf(3, {
      async takeOver() {
        await sleep(20 * TAKE_OVER_MS);
        throw publisherError('publisher_fenced');
      },
    });
    expect(inSteps(waits)).toEqual([1, 2, 4]);
  }, 20_000);

  test('no longer because Kafka fails meanwhile', async () => {
    let failures = 0;
    const [wait] = await waitsOf(1, {
      async publish() {
        throw publisherError('publisher_fenced');
      },
      async activity() {
        if ((failures += 1) <= 5) throw publisherError('publisher_unavailable');
        return 'silent';
      },
    });
    // 5 pauses of 0.1 to 1.6 seconds, and one take-over time.
    expect(wait).toBeLessThan(3_100 / TAKE_OVER_MS + 2);
  }, 20_000);
});

describe('a relay that would get nowhere', () => {
  test('because its checkpoint is of another log, or what was published is gone, fences nobody', async () => {
    const topics = createMemoryTopics();
    topics.state.checkpoint = reached(EVENTS[0]!.position).checkpoint;
    const other = startOn(topics, healthy);
    await until(async () => (await other.health()).state === 'retrying');
    expect((await other.health()).reason).toContain('The log has changed');
    expect(other.takeOvers.count).toBe(0);
    await other.close();

    topics.state.checkpoint = createCheckpoint(
      { root: EVENTS[0]!.id, declarations: [] },
      EVENTS[0]!,
    );
    topics.state.lost = 'The topic is gone.';
    const missing = startOn(topics, healthy);
    await until(async () => (await missing.health()).state === 'retrying');
    expect((await missing.health()).reason).toMatch(/^The topic is gone\./);
    expect(missing.takeOvers.count).toBe(0);
    await missing.close();

    const startAfter = EVENTS[0]!.position;
    const accepted = startOn(topics, healthy, { startAfter });
    await until(() => topics.state.published.length === 2);
    await accepted.close();
  }, 20_000);
});
