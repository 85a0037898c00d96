import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import {
  loadSession,
  openTurnTarget,
  sessionTarget,
} from '../../../../../shared/sessions/history/loadSession.ts';
import { session } from '../../../../../shared/sessions/decider.ts';
import type { SessionEvent } from '../../../../../shared/sessions/events.ts';
import { appendEvents, NO_STREAM } from '../../../../../shared/eventlog/append.ts';
import { createDamagedStreams } from '../../../../../shared/eventlog/reading/damagedStreams.ts';
import { sessionStream } from '../../../../../shared/eventlog/streams.ts';
import { LIMITS } from '../../../../../shared/limits.ts';
import {
  bytesOf,
  type ReadOptions,
  type StoredEvent,
} from '../../../../../shared/ports/eventStore.ts';
import { replay } from '../../../../support/builders/deciderSpecification.ts';
import {
  sessionCompacted,
  sessionDescribed,
  sessionStarted,
  toolCalled,
  turnCompleted,
  turnFailed,
  turnInterrupted,
  turnStarted,
} from '../../../../support/builders/events.ts';
import { ofNoTurn } from '../../../../support/builders/randomHistory.ts';
import {
  eventStoreFixture,
  type SqliteEventStoreFixture,
} from '../../../../support/stores/sqlite/sqliteEventStore.ts';

let fixture: SqliteEventStoreFixture;
beforeEach(async () => {
  fixture = await eventStoreFixture();
});
afterEach(() => fixture.dispose());

const ENDS = [turnCompleted, turnFailed, turnInterrupted];

/** More turns than one page holds. */
const turns = Array.from({ length: 40 }, (_, index): SessionEvent[] => [
  turnStarted(index + 1),
  toolCalled(index + 1),
  ENDS[index % ENDS.length]!(index + 1),
]).flat();

async function write(stream: string, events: readonly SessionEvent[]): Promise<void> {
  let head = NO_STREAM;
  // One at a time: together they may be more than an append takes.
  for (const event of events)
    ({ head } = await appendEvents(
      fixture.store(),
      { stream, head },
      {
        events: [{ id: randomUUID(), ...event }],
        authorship: {
          account_id: 'acct_1',
          key_id: 'key_1',
          request_id: 'request_1',
          causation_id: 'request_1',
          recorded_at: '2026-11-21T09:00:00.000Z',
        },
      },
    ));
}

/** Only the beginning and the end of a long session are read: what is told in between can be no part of its state. */
test.each([
  ['between its turns', [...turns]],
  ['in a turn', turns.slice(0, -1)],
])('a long session %s has the state that all of its events come to', async (_where, later) => {
  const events = [sessionStarted(), ...(ofNoTurn as SessionEvent[]), ...later];
  const { stream, load } = sessionTarget('session_1');
  await write(stream, events);
  const damaged = createDamagedStreams(() => undefined);
  const { state } = await load({ store: fixture.store(), damaged });
  expect(state).toEqual(replay(session, events));
});

/** Cancelled turns, thousands of changes of the title, and a turn that a crash may leave open. */
test.each([
  ['an open turn', [turnStarted(2)]],
  ['an open turn with tool calls', [turnStarted(2), toolCalled(2), toolCalled(2)]],
  ['a cancelled turn', [turnStarted(2), turnInterrupted(2)]],
  ['a description', [sessionDescribed({}, 'last', 1)]],
])(
  'a session without answers that ends with %s is not read back to its beginning',
  async (_, end) => {
    const described = Array.from({ length: 300 }, (__, nth) => sessionDescribed({}, `${nth}`, 1));
    const events = [sessionStarted(), turnStarted(1), turnInterrupted(1), ...described, ...end];
    const { stream, load } = sessionTarget('session_1');
    await write(stream, events);
    const store = fixture.store();
    let read = 0;
    const { state } = await load({
      damaged: createDamagedStreams(() => undefined),
      store: {
        ...store,
        async readStream(...asked) {
          const page = await store.readStream(...asked);
          read += page.length;
          return page;
        },
      },
    });
    expect(state).toEqual(replay(session, events));
    // The last page, and the first events.
    expect(read).toBeLessThan(20);
  },
);

/** A source that measures each page that is read. */
function measuringPages(measure: (page: readonly StoredEvent[]) => number) {
  const store = fixture.store();
  const pages: number[] = [];
  const source = {
    damaged: createDamagedStreams(() => undefined),
    store: {
      ...store,
      async readStream(stream: string, options: ReadOptions) {
        const page = await store.readStream(stream, options);
        pages.push(measure(page));
        return page;
      },
    },
  };
  return { pages, source };
}

test('a session is read in pages that are compared in some milliseconds', async () => {
  const described = Array.from({ length: 600 }, (_, nth) => sessionDescribed({}, `${nth}`, 1));
  const events = [sessionStarted(), turnStarted(1), turnCompleted(1), ...described];
  await write(sessionStream('session_1'), events);
  const { pages, source } = measuringPages((page) => page.length);
  const loaded = await loadSession(source, 'session_1', async (found) => found);
  expect(loaded.turns).toHaveLength(1);
  expect(Math.max(...pages)).toBeLessThanOrEqual(128);
});

test('a session of large turns is read in pages of a bounded size', async () => {
  const TURNS = 20;
  const large = 'x'.repeat(300_000);
  const events = Array.from({ length: TURNS }, (_, index): SessionEvent[] => {
    const started = turnStarted(index + 1);
    return [
      { ...started, data: { ...started.data, input: large } } as SessionEvent,
      turnCompleted(index + 1),
    ];
  }).flat();
  await write(sessionStream('session_1'), [sessionStarted(), ...events]);
  const { pages, source } = measuringPages((page) =>
    page.reduce((sum, event) => sum + bytesOf(event), 0),
  );
  const loaded = await loadSession(source, 'session_1', async (found) => found);
  expect(loaded.whole).toBe(true);
  expect(loaded.turns.map(({ turn, input }) => [turn, input.length])).toEqual(
    Array.from({ length: TURNS }, (_, index) => [index + 1, large.length]),
  );
  expect(pages.length).toBeGreaterThan(2);
  expect(Math.max(...pages)).toBeLessThan(LIMITS.store.pageBytes + 3 * large.length);
});

test('to end an open turn, the large turn before it is not read', async () => {
  const large = turnCompleted(5, { output: 'x'.repeat(340_000) });
  const small = [1, 2, 3, 4].flatMap((turn) => [turnStarted(turn), turnCompleted(turn)]);
  const events = [sessionStarted(), ...small, turnStarted(5), large, turnStarted(6)];
  const { stream, load } = openTurnTarget('session_1');
  await write(stream, events);
  const { pages, source } = measuringPages((page) => Math.max(...page.map(bytesOf)));
  const { state } = await load(source);
  expect(state).toEqual(replay(session, events));
  expect(Math.max(...pages)).toBeLessThan(10_000);
});

test('other work gets a turn between the pages of a session', async () => {
  const events = Array.from({ length: 60 }, (_, index): SessionEvent[] => [
    turnStarted(index + 1),
    turnFailed(index + 1),
  ]).flat();
  await write(sessionStream('session_1'), [sessionStarted(), ...events]);
  const store = fixture.store();
  let loopTurns = 0;
  const pages = new Set<number>();
  let isLoading = true;
  const count = (): void => {
    loopTurns += 1;
    if (isLoading) setImmediate(count);
  };
  count();
  let reads = 0;
  const source = {
    damaged: createDamagedStreams(() => undefined),
    store: {
      ...store,
      async readStream(stream: string, options: ReadOptions) {
        if (options.direction === 'backwards') {
          reads += 1;
          pages.add(loopTurns);
        }
        return store.readStream(stream, options);
      },
    },
  };
  await loadSession(source, 'session_1', async (found) => found);
  isLoading = false;
  expect(reads).toBeGreaterThan(2);
  expect(pages.size).toBe(reads);
});

/** An agent may have a long schema of its answers, which is recorded with every turn. */
test('of earlier turns only the texts that prompts contain stay in memory', async () => {
  const TURNS = 200;
  const schema = JSON.stringify({ description: `\u4e00${'x'.repeat(32_000)}` });
  const settings = {
    model: 'm',
    response_format: { type: 'json_schema' as const, json_schema: { name: 'a', schema } },
  };
  const events = Array.from({ length: TURNS }, (_, index): SessionEvent[] => [
    turnStarted(index + 1, { settings }),
    turnCompleted(index + 1, { reasoning: 'x'.repeat(10_000) }),
  ]).flat();
  await write(sessionStream('session_1'), [sessionStarted(), ...events]);
  setFlagsFromString('--expose_gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const heapUsed = (): number => {
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  const source = { store: fixture.store(), damaged: createDamagedStreams(() => undefined) };
  const before = heapUsed();
  let kept = Infinity;
  const loaded = await loadSession(source, 'session_1', async (found) => {
    if (found.length === TURNS) kept = heapUsed() - before;
    return found;
  });
  expect(loaded.history).toHaveLength(TURNS);
  // The settings alone take 12 MB.
  expect(kept).toBeLessThan(3_000_000);
});

describe('a summary', () => {
  const LAST = 60;
  const SUMMED = 40;
  const summary = { up_to_turn: SUMMED, dropped: 0, text: `what was said up to ${SUMMED}` };
  /** The revision that the summary is recorded at, right after turn `after`. */
  const revisionAfter = (after: number): number => 1 + 2 * after;
  const history = (after: number): SessionEvent[] =>
    Array.from({ length: LAST }, (_, index): SessionEvent[] => {
      const turn = index + 1;
      const known = turn > after ? { summary_revision: revisionAfter(after) } : {};
      return [
        turnStarted(turn, known),
        turnCompleted(turn),
        ...(turn === after ? [sessionCompacted(1, SUMMED)] : []),
      ];
    }).flat();

  test.each([
    ['long ago', 42],
    ['just now', LAST],
  ])('of %s stands for the turns that it sums up, and they are not read', async (_, after) => {
    await write(sessionStream('session_1'), [sessionStarted(), ...history(after)]);
    const source = {
      store: fixture.store(),
      damaged: createDamagedStreams(() => undefined),
    };
    const loaded = await loadSession(source, 'session_1', async (found) => found);
    expect(loaded.summary).toEqual({
      ...summary,
      oldest: 1,
      session_id: 'session_1',
      revision: revisionAfter(after),
    });
    expect(loaded.turns.map(({ turn }) => turn)).toEqual(
      Array.from({ length: LAST - SUMMED }, (__, index) => SUMMED + index + 1),
    );
    expect(loaded.whole).toBe(true);
  });

  test('is known also where fewer turns fit than those after it', async () => {
    await write(sessionStream('session_1'), [sessionStarted(), ...history(42)]);
    const source = {
      store: fixture.store(),
      damaged: createDamagedStreams(() => undefined),
    };
    const loaded = await loadSession(source, 'session_1', async (found) => found.slice(-2));
    expect(loaded.summary?.up_to_turn).toBe(SUMMED);
    expect(loaded.history.map(({ turn }) => turn)).toEqual([LAST - 1, LAST]);
    expect(loaded.whole).toBe(false);
  });
});
