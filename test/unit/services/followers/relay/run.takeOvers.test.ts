import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { TurnlogError } from '../../../../../shared/lib/errors/turnlogError.ts';
import { checkpointOf } from '../../../../../shared/eventlog/identity/logIdentity.ts';
import type { Checkpoint } from '../../../../../shared/ports/eventStore.ts';
import type { Publisher } from '../../../../../shared/publicEvents/publisher.ts';
import { agentCreated } from '../../../../support/events/events.ts';
import { reached, recordHistory } from '../../../../support/events/history.ts';
import { relayTo } from '../../../../support/kafka/relay.ts';
import { fixedLog, type FixedLog } from '../../../../support/store/fixedLog.ts';

const TAKE_OVER_MS = 200;

const { record } = recordHistory();
const EVENTS = [0, 1, 2].map((index) => record({ stream: `agent-agent_${index}` }, agentCreated()));

const healthy = fixedLog(EVENTS);
const illegible = fixedLog(EVENTS.map((event) => ({ ...event, data: '{}' })));

/** What publishers share, as a cluster would keep it. */
function createCluster() {
  const state = {
    checkpoint: undefined as Checkpoint | undefined,
    owner: 0,
    activity: 0,
    lost: undefined as string | undefined,
    published: [] as string[],
    failing: false,
  };
  const publisherOf = (takeOvers: { count: number }): Publisher => ({
    async takeOver() {
      takeOvers.count += 1;
      const owner = (state.owner += 1);
      const work = (): void => {
        if (owner !== state.owner) throw new TurnlogError('publisher_fenced', 'fenced');
        if (state.failing)
          throw new TurnlogError('publisher_unavailable', 'It fails.', { retriable: true });
        state.activity += 1;
      };
      return {
        checkpoint: state.checkpoint,
        async publish(events, checkpoint) {
          work();
          state.published.push(...events.map(({ id }) => id));
          state.checkpoint = checkpoint;
        },
        beat: async () => work(),
        visitPublished: async (visit) => state.published.forEach(visit),
        parked: () => ({ count: 0, keys: [] }),
        close: async () => undefined,
      };
    },
    checkpoint: async () => state.checkpoint,
    lost: async () => state.lost,
    activity: async () => String(state.activity),
    isEmpty: async () => state.published.length === 0,
    close: async () => undefined,
  });
  return { state, publisherOf };
}

function startOn(
  { publisherOf }: ReturnType<typeof createCluster>,
  log: FixedLog,
  changes: Parameters<typeof relayTo>[2] = {},
) {
  const takeOvers = { count: 0 };
  const relay = relayTo(publisherOf(takeOvers), log, { takeOverMs: TAKE_OVER_MS, ...changes });
  return { ...relay, takeOvers };
}

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await sleep(5);
}

describe('a relay that takes over and gets nowhere', () => {
  test('leaves the field to one that gets on', async () => {
    const cluster = createCluster();
    const well = startOn(cluster, healthy);
    await until(async () => (await well.health()).state === 'relaying');
    cluster.state.checkpoint = undefined;
    const sick = startOn(cluster, illegible);
    await until(async () => (await sick.health()).state === 'retrying');
    await until(async () => (await sick.health()).state === 'standing_by');
    const { count } = sick.takeOvers;
    await sleep(10 * TAKE_OVER_MS);
    expect(sick.takeOvers.count).toBe(count);
    expect((await well.health()).state).toBe('relaying');
    await Promise.all([sick.close(), well.close()]);
  }, 20_000);

  test('pauses for longer than another one needs to take over, and longer each time', async () => {
    const alone = startOn(createCluster(), illegible);
    await until(() => alone.lines.length >= 3);
    expect(alone.lines.slice(0, 3).map(({ fields }) => fields['retry_in_ms'])).toEqual(
      [2, 4, 8].map((times) => times * TAKE_OVER_MS),
    );
    await alone.close();
  }, 20_000);

  test('is never shown as well in between, and says why', async () => {
    const cluster = createCluster();
    cluster.state.failing = true;
    const relay = startOn(cluster, healthy);
    await until(async () => (await relay.health()).state === 'retrying');
    for (let look = 0; look < 60; look += 1) {
      expect(await relay.health()).toMatchObject({ state: 'retrying', reason: 'It fails.' });
      await sleep(10);
    }
    cluster.state.failing = false;
    await until(async () => (await relay.health()).state === 'relaying');
    expect(await relay.health()).not.toHaveProperty('reason');
    await relay.close();
  }, 20_000);
});

describe('a relay that would get nowhere', () => {
  test('because its checkpoint is of another log, or what was published is gone, fences nobody', async () => {
    const cluster = createCluster();
    cluster.state.checkpoint = reached(EVENTS[0]!.position).checkpoint;
    const other = startOn(cluster, healthy);
    await until(async () => (await other.health()).state === 'retrying');
    expect((await other.health()).reason).toContain('The log has changed');
    expect(other.takeOvers.count).toBe(0);
    await other.close();

    cluster.state.checkpoint = checkpointOf({ root: EVENTS[0]!.id, declarations: [] }, EVENTS[0]!);
    cluster.state.lost = 'The topic is gone.';
    const missing = startOn(cluster, healthy);
    await until(async () => (await missing.health()).state === 'retrying');
    expect((await missing.health()).reason).toMatch(/^The topic is gone\./);
    expect(missing.takeOvers.count).toBe(0);
    await missing.close();

    const startAfter = EVENTS[0]!.position;
    const accepted = startOn(cluster, healthy, { startAfter });
    await until(() => cluster.state.published.length === 2);
    await accepted.close();
  }, 20_000);
});
