import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { createLagTracker } from '../../../../../shared/eventlog/identity/lag.ts';
import { withIdleTicks } from '../../../../../shared/lib/time/withIdleTicks.ts';
import { republishLog } from '../../../../../services/followers/relay/republishLog.ts';
import type {
  Checkpoint,
  EventBatch,
  Position,
  StoredEvent,
} from '../../../../../shared/ports/eventStore.ts';
import type { Publisher } from '../../../../../shared/publicEvents/publisher.ts';
import {
  agentCreated,
  at,
  keyIssued,
  sessionStarted,
  turnCompleted,
  turnStarted,
} from '../../../../support/builders/events.ts';
import { positionOf, recordHistory } from '../../../../support/builders/history.ts';
import { createMemoryTopics, publisherError } from '../../../../support/fakes/memoryTopics.ts';
import { turnsDuring } from '../../../../support/fakes/loopTurns.ts';
import { fixedLog, type FixedLog } from '../../../../support/fakes/fixedLog.ts';
import { relayTo } from '../../../../support/servers/kafka/relay.ts';
import { memoryReads } from '../../../../support/fakes/memoryReads.ts';
import { skipPauses } from '../../../../support/fakes/jumpingClock.ts';

skipPauses();

const { record } = recordHistory();
const agent = (index: number): StoredEvent =>
  record({ stream: `agent-agent_${index}` }, agentCreated());
const EVENTS = [
  agent(0),
  record({ stream: 'account-acct_1' }, keyIssued('key_1')),
  agent(1),
  agent(2),
];

/** Two events in a batch. */
const log = (events: readonly StoredEvent[] = EVENTS): FixedLog => fixedLog(events, 2);

function memoryPublisher() {
  const { state, createPublisher } = createMemoryTopics();
  return { state, ...createPublisher(), publishedIds: () => state.published.map(({ id }) => id) };
}

const PUBLIC_IDS = [EVENTS[0], EVENTS[2], EVENTS[3]].map((event) => event?.id);

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await sleep(5);
}

/** More than the relay may handle in one turn of the event loop. */
const THOUSAND = Array.from({ length: 1_000 }, (_, index) => agent(1_000 + index));

describe('the relay', () => {
  test('leaves the event loop to others while it handles a large batch', async () => {
    const { state, publisher } = memoryPublisher();

    const turns = await turnsDuring(async () => {
      const relay = relayTo(publisher, fixedLog(THOUSAND));
      await until(() => state.published.length === THOUSAND.length);
      await relay.close();
    });

    expect(state.published.map(({ id }) => id)).toEqual(THOUSAND.map(({ id }) => id));
    expect(turns).toBeGreaterThan(150);
  });

  test('publishes what is public, in order, and moves the checkpoint past what is not', async () => {
    const { state, publisher, publishedIds } = memoryPublisher();
    const relay = relayTo(publisher, log());
    await until(() => state.checkpoint?.position === EVENTS[3]?.position);
    expect(publishedIds()).toEqual(PUBLIC_IDS);
    expect(state.checkpoint).toMatchObject({
      position: EVENTS[3]?.position,
      event_id: EVENTS[3]?.id,
      log_id: EVENTS[0]?.id,
    });
    expect(await relay.health()).toEqual({
      state: 'relaying',
      position: EVENTS[3]?.position,
      lag_ms: 0,
    });
    await relay.close();
  });

  test.each([
    ['was not committed', false],
    ['was committed all the same', true],
  ])(
    'asks for the checkpoint after a failure, so that a transaction that %s is published once',
    async (_, afterCommit) => {
      const { state, publisher, publishedIds } = memoryPublisher();
      state.failures = [{ code: 'publisher_unavailable', afterCommit }];
      const relay = relayTo(publisher, log());
      await until(() => state.checkpoint?.position === EVENTS[3]?.position);
      expect(publishedIds()).toEqual(PUBLIC_IDS);
      expect(relay.lines).toMatchObject([
        { level: 'warn', fields: { err: { code: 'publisher_unavailable' }, retry_in_ms: 100 } },
      ]);
      await relay.close();
    },
  );

  test('stands by when it is fenced and does not fight for the topics while the other one is alive', async () => {
    const { state, publisher, takeOvers } = memoryPublisher();
    let looks = 0;
    let alive = true;
    // Alive whenever it is looked at, however slow the machine is.
    const activity = async () => (alive ? `look ${(looks += 1)}` : 'silent');
    const relay = relayTo({ ...publisher, activity }, log(), { takeOverMs: 30 });
    await until(() => state.beats > 0);
    await publisher.takeOver();
    // More than the take-over time has.
    await until(() => looks > 30);
    expect(takeOvers.count).toBe(2);
    expect(await relay.health()).toMatchObject({ state: 'standing_by', lag_ms: null });
    alive = false;
    await until(() => takeOvers.count === 3);
    await until(async () => (await relay.health()).state === 'relaying');
    await relay.close();
  });

  test('publishes nothing past an event that can not be understood, and names it in the log', async () => {
    const broken = record(
      { stream: 'agent-agent_9' },
      { type: 'agent.created.v1', data: { name: 5 } },
    );
    const { publisher, publishedIds } = memoryPublisher();
    const relay = relayTo(publisher, log([...EVENTS, broken, agent(10)]));
    await until(() => relay.lines.length > 1);
    expect(publishedIds()).toEqual(PUBLIC_IDS);
    expect(relay.lines.at(-1)?.fields['err']).toMatchObject({
      message: expect.stringContaining(`the event ${broken.id}`),
    });
    expect(await relay.health()).toMatchObject({ state: 'retrying' });
    await relay.close();
  });
});

test('a relay stops before an event that the store leaves out, and health says why', async () => {
  const history = recordHistory();
  const stream = 'session-session_1';
  const events = [
    history.record({ stream }, sessionStarted()),
    history.record({ stream }, turnStarted(1)),
    history.record({ stream }, turnCompleted(1)),
  ];
  const { publisher, publishedIds } = memoryPublisher();
  let left = events.toSpliced(1, 1);
  const lying: FixedLog = {
    ...fixedLog(events),
    ...memoryReads(events),
    subscribe: (options) => fixedLog(left, 1).subscribe(options),
  };
  const relay = relayTo(publisher, lying);
  await until(async () => (await relay.health()).state === 'retrying');
  expect((await relay.health()).reason).toContain(`revision 2 of the stream ${stream} without`);
  expect(publishedIds()).toEqual([events[0]!.id]);
  left = events;
  await until(() => publishedIds().length === 3);
  expect(publishedIds()).toEqual(events.map(({ id }) => id));
  await relay.close();
});

describe('a relay that is to begin where the log never was', () => {
  const elsewhere: Checkpoint = {
    log_id: EVENTS[0]!.id,
    position: positionOf(2),
    event_id: 'an event that is not there',
    event_hash: '',
  };

  test.each([
    ['a checkpoint beyond the end', { ...elsewhere, position: positionOf(99) }, 'log_changed'],
    ['a checkpoint at another event', elsewhere, 'log_changed'],
    ['KAFKA_START_AFTER beyond the end', positionOf(99), 'position_invalid'],
    ['KAFKA_START_AFTER that is no position', 'zzz' as Position, 'position_invalid'],
  ])(
    'by %s publishes nothing, says so once and takes over no second time',
    async (_, begin, code) => {
      const { state, publisher, takeOvers } = memoryPublisher();
      const checkpoint = typeof begin === 'string' ? undefined : begin;
      state.checkpoint = checkpoint;
      const relay = relayTo(publisher, log(), {
        takeOverMs: 30,
        ...(typeof begin === 'string' && { startAfter: begin }),
      });
      await until(async () => (await relay.health()).state === 'retrying');
      await sleep(300);
      const { reason } = await relay.health();
      expect(reason).toContain(checkpoint ? 'accept-restored' : 'KAFKA_START_AFTER');
      expect(reason).toContain(checkpoint ? checkpoint.event_id : begin);
      expect(relay.lines).toMatchObject([
        { level: 'warn', fields: { err: { code, message: reason } } },
      ]);
      // Which log it is can be seen without fencing anybody.
      expect(state).toMatchObject({ published: [], checkpoint });
      expect(takeOvers.count).toBe(checkpoint ? 0 : 1);
      await relay.close();
    },
  );

  test('pauses shortly after an ordinary failure that follows a refusal', async () => {
    const { publisher, takeOvers } = memoryPublisher();
    const failing: Publisher = {
      ...publisher,
      takeOver: () =>
        takeOvers.count === 1
          ? Promise.reject(publisherError('publisher_unavailable'))
          : publisher.takeOver(),
    };
    const relay = relayTo(failing, log(), { startAfter: positionOf(99) });
    await until(() => relay.lines.length >= 3);
    expect(relay.lines.slice(0, 3)).toMatchObject([
      { fields: { retry_in_ms: 5_000, err: { code: 'position_invalid' } } },
      { fields: { retry_in_ms: 100, err: { code: 'publisher_unavailable' } } },
      { fields: { retry_in_ms: 200, err: { code: 'publisher_unavailable' } } },
    ]);
    await relay.close();
  }, 20_000);

  test.each([
    ['a checkpoint', elsewhere, undefined, 'log_changed'],
    ['--from', undefined, positionOf(99), 'position_invalid'],
  ])('is refused to a replay as well, by %s', async (_, checkpoint, after, code) => {
    const { state, publisher, takeOvers } = memoryPublisher();
    state.checkpoint = checkpoint;
    const { signal } = new AbortController();
    const refused = republishLog({
      log: log(),
      publisher,
      after,
      only: undefined,
      signal,
      onProgress: () => undefined,
    });
    await expect(refused).rejects.toMatchObject({ code });
    expect(state).toMatchObject({ published: [], checkpoint });
    expect(takeOvers.count).toBe(1);
  });

  test('is refused to a replay of an empty log too', async () => {
    const { publisher } = memoryPublisher();
    const parts = {
      log: fixedLog([]),
      publisher,
      only: undefined,
      signal: new AbortController().signal,
      onProgress: () => undefined,
    };
    await expect(republishLog({ ...parts, after: positionOf(1) })).rejects.toMatchObject({
      code: 'position_invalid',
    });
    expect(await republishLog({ ...parts, after: undefined })).toBe(true);
  });
});

describe('a relay whose store does not say where its log ends', () => {
  test('is asked for its health and answers all the same', async () => {
    const { publisher } = memoryPublisher();
    const relay = relayTo(publisher, {
      ...log(),
      head: () => new Promise<never>(() => undefined),
    });
    await until(async () => (await relay.health()).state === 'relaying');
    const began = performance.now();
    expect(await relay.health()).toMatchObject({ state: 'relaying', lag_ms: 0 });
    expect(performance.now() - began).toBeLessThan(5_000);
    await relay.close();
  });
});

describe('a replay', () => {
  const everything = {
    log: log(),
    after: undefined,
    only: undefined,
    signal: new AbortController().signal,
    onProgress: () => undefined,
  };

  test('fails where the store leaves out an event', async () => {
    const history = recordHistory();
    const stream = 'session-session_1';
    const events = [sessionStarted(), turnStarted(1), turnCompleted(1)].map((event) =>
      history.record({ stream }, event),
    );
    const { publisher, publishedIds } = memoryPublisher();
    const lying = { ...fixedLog(events.toSpliced(1, 1), 1), ...memoryReads(events) };
    await expect(republishLog({ ...everything, log: lying, publisher })).rejects.toMatchObject({
      code: 'store_unavailable',
    });
    expect(publishedIds()).toEqual([events[0]!.id]);
  });

  test('that fails goes on from its checkpoint, and publishes once what was committed all the same', async () => {
    const { state, publisher, publishedIds } = memoryPublisher();
    state.failures = [
      { code: 'publisher_unavailable', afterCommit: false },
      { code: 'publisher_unavailable', afterCommit: true },
    ];
    expect(await republishLog({ ...everything, publisher })).toBe(true);
    expect(publishedIds()).toEqual(PUBLIC_IDS);
  });

  test('gives up when another replay has taken over', async () => {
    const { state, publisher } = memoryPublisher();
    state.failures = [{ code: 'publisher_fenced', afterCommit: false }];
    await expect(republishLog({ ...everything, publisher })).rejects.toMatchObject({
      code: 'publisher_fenced',
    });
  });
});

describe('the lag', () => {
  const batch = (events: StoredEvent[], caughtUp: boolean): EventBatch => ({
    events,
    position: events.at(-1)?.position,
    checkpoint: undefined,
    caughtUp,
  });
  const end = EVENTS.at(-1)?.position;

  test('is the age of the oldest event that is not published', () => {
    const lag = createLagTracker({ now: () => Date.parse(at(100)) });
    lag.resumeAt(undefined);
    lag.startBatch(batch(EVENTS.slice(0, 2), false));
    expect(lag.measure(end)).toEqual({ events: null, ms: 100_000 });
    lag.finishBatch();
    expect(lag.measure(end)).toEqual({ events: null, ms: 99_000 });
    lag.startBatch(batch(EVENTS.slice(2), true));
    expect(lag.measure(end)).toEqual({ events: 2, ms: 99_000 });
    lag.finishBatch();
    expect(lag.measure(end)).toEqual({ events: 0, ms: 0 });
  });

  test('is nothing while a new end of the log may be on its way, and the time since it was seen after that', () => {
    const now = { value: 1_000 };
    const lag = createLagTracker({ now: () => 5 }, () => now.value);
    lag.resumeAt(positionOf(1));
    expect(lag.measure(positionOf(1))).toEqual({ events: 0, ms: 0 });
    now.value = 60_000;
    expect(lag.measure(positionOf(2)).ms).toBe(0);
    now.value = 63_000;
    expect(lag.measure(positionOf(3))).toEqual({ events: null, ms: 3_000 });
    lag.startBatch({ events: [], position: positionOf(2), checkpoint: undefined, caughtUp: true });
    lag.finishBatch();
    expect(lag.measure(positionOf(3)).ms).toBe(0);
  });

  test('is the time since the beginning while nothing was read yet of what there is', () => {
    const now = { value: 1_000 };
    const lag = createLagTracker({ now: () => 5 }, () => now.value);
    now.value = 6_000;
    expect(lag.measure(positionOf(2))).toEqual({ events: null, ms: 5_000 });
  });

  test('is no time that the clock was set by, forwards or backwards', () => {
    const now = { value: Date.parse(at(100)), elapsed: 0 };
    const lag = createLagTracker({ now: () => now.value }, () => now.elapsed);
    now.value -= 3_600_000;
    expect(lag.measure(positionOf(2)).ms).toBe(0);
    lag.startBatch(batch([], true));
    lag.finishBatch();
    expect(lag.measure(positionOf(2)).ms).toBe(0);
    now.value += 7_200_000;
    expect(lag.measure(positionOf(2)).ms).toBe(0);
    now.value -= 86_400_000;
    lag.startBatch(batch(EVENTS.slice(0, 2), false));
    expect(lag.measure(positionOf(4)).ms).toBe(0);
    lag.finishBatch();
    // However far the writer's clock is ahead, it has been known for so long.
    now.elapsed += 3_000;
    lag.startBatch(batch(EVENTS.slice(2), true));
    now.elapsed += 4_000;
    expect(lag.measure(positionOf(4)).ms).toBe(7_000);
  });

  test('is nothing in an empty log', () => {
    expect(createLagTracker({ now: () => 5 }).measure(undefined)).toEqual({ events: 0, ms: 0 });
  });
});

describe('idle times of a source', () => {
  test('are reported between its items, none of which is lost', async () => {
    const source = async function* () {
      yield 1;
      await sleep(50);
      yield 2;
    };
    const seen: Array<number | 'idle'> = [];
    for await (const item of withIdleTicks(source(), 10)) seen.push(item);
    expect(seen.filter((item) => item !== 'idle')).toEqual([1, 2]);
    expect(seen.slice(1, -1)).toContain('idle');
    expect(new Set(seen.slice(1, -1))).toEqual(new Set(['idle']));
  });

  test('the error of a source is an error of the loop', async () => {
    const source = async function* () {
      yield 1;
      throw new Error('gone');
    };
    const drain = async (): Promise<void> => {
      for await (const item of withIdleTicks(source(), 10)) expect(item).toBe(1);
    };
    await expect(drain()).rejects.toThrow('gone');
  });
});
