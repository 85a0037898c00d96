import { DatabaseSync } from 'node:sqlite';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  eraseStream,
  recordErasure,
  type ErasedStream,
  serializeErasureReason,
} from '../../../../shared/erasure/eraseStream.ts';
import type { OwnedStreamQueries } from '../../../../shared/erasure/ownedStreams.ts';
import { setHold, setRetention } from '../../../../shared/accounts/commands.ts';
import { eraseAccount } from '../../../../shared/erasure/eraseAccount.ts';
import { createErasureFinisher } from '../../../../shared/erasure/finishErasures.ts';
import { createErasurePoller } from '../../../../shared/erasure/evictErased.ts';
import { authorOf, prepareEvents } from '../../../../shared/commandHandling/prepareEvents.ts';
import type { HandleContext } from '../../../../shared/commandHandling/handle.ts';
import type { DomainEvent } from '../../../../shared/eventlog/eventTypes.ts';
import { storeUnavailableError, TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';
import { NO_STREAM, type StreamHead, appendEvents } from '../../../../shared/eventlog/append.ts';
import { openEvents } from '../../../../shared/eventlog/encryption/openTexts.ts';
import { withOpenTexts } from '../../../../shared/eventlog/encryption/protectedStore.ts';
import { readPage } from '../../../../shared/eventlog/reading/readWhole.ts';
import type { StoredEvent } from '../../../../shared/ports/eventStore.ts';
import { planBatch } from '../../../../shared/projections/plan.ts';
import type { AccountRow, ErasureRow } from '../../../../shared/readModels/tables.ts';
import { wordsKeyId, createWordTokenizer } from '../../../../shared/search/wordTokens.ts';
import {
  accountAudited,
  accountOpened,
  agentCreated,
  keyIssued,
  replayStarted,
  sessionRow,
  sessionStarted,
  toolCalled,
  turnCompleted,
  turnStarted,
} from '../../../support/builders/events.ts';
import { positionOf } from '../../../support/builders/history.ts';
import { handleContext } from '../../../support/stores/handleContext.ts';
import {
  eventStoreFixture,
  type SqliteEventStoreFixture,
} from '../../../support/stores/sqlite/sqliteEventStore.ts';

const actor = { account_id: 'acct_1', key_id: 'key_1', request_id: 'request_1' };
const ACCOUNT = 'account-acct_1';
const STREAM = 'session-session_1';
const REQUEST = { reason: 'request' } as const;
const never = new AbortController().signal;

let fixture: SqliteEventStoreFixture;
let context: HandleContext;
beforeEach(async () => {
  fixture = await eventStoreFixture();
  context = handleContext(fixture.store(), Date.UTC(2026, 10, 22));
  await write(ACCOUNT, accountOpened('somebody'), keyIssued('key_1'));
});
afterEach(() => fixture.dispose());

async function write(stream: string, ...events: DomainEvent[]): Promise<StreamHead> {
  let head = NO_STREAM;
  for (const event of events) {
    const facts = await prepareEvents(context, authorOf(actor), head, [event]);
    ({ head } = await appendEvents(context.store, { stream, head }, facts));
  }
  return head;
}
const stored = (stream: string): Promise<StoredEvent[]> =>
  context.store.readStream(stream, { direction: 'forwards', limit: 100 });
const typesOf = async (stream: string): Promise<string[]> =>
  (await stored(stream)).map(({ type }) => type);
const isErased = async (stream: string): Promise<boolean> => {
  const events = await openEvents(context.store.keys, await stored(stream));
  return events.some(({ erased }) => erased);
};
/** Read models that show no row, and nothing that is parked. */
const NONE = {
  listParkedStreams: async () => ({ count: 0, streams: [] }),
  findAccount: async () => undefined,
  findAgent: async () => undefined,
  findSession: async () => undefined,
  findWebhook: async () => undefined,
  findReplay: async () => undefined,
  listWebhooks: async () => ({ rows: [], more: false }),
  listReplays: async () => ({ rows: [], more: false }),
};
const NO_DEPENDENTS = {
  listReplaysOf: async () => ({ rows: [], more: false }),
  listForksOf: async () => ({ rows: [], more: false }),
  findNewestSessionOf: async () => undefined,
};
const begun = async (): Promise<string[]> =>
  (await context.store.keys.listErasures(10)).map(({ stream }) => stream);
const talked = [sessionStarted(), turnStarted(1), toolCalled(1), turnCompleted(1)];

/** The same context over a store that does something else instead. */
const over = (changes: Partial<HandleContext['store']>): HandleContext => ({
  ...context,
  store: { ...context.store, ...changes },
});

describe('erasing a stream', () => {
  test('names the keys of its texts, destroys them, and leaves nothing to go on with', async () => {
    const { key } = await write(STREAM, ...talked);
    const erased = await eraseStream(context, STREAM, { ...REQUEST, note: 'why' }, actor);
    expect(erased).toMatchObject({ key_ids: [key!.id], again: false, unread: undefined });
    const last = (await stored(STREAM)).at(-1)!;
    expect(JSON.parse(last.data)).toEqual({ reason: 'request', note: 'why', key_ids: [key!.id] });
    expect(erased.event).toMatchObject({ id: last.id, revision: 4 });
    expect([await isErased(STREAM), await begun()]).toEqual([true, []]);
  });

  test('ends its open turn in the same append', async () => {
    await write(STREAM, sessionStarted(), turnStarted(1));
    await eraseStream(context, STREAM, REQUEST, actor);
    expect((await typesOf(STREAM)).slice(-2)).toEqual([
      'session.turn_interrupted.v1',
      'session.erased.v1',
    ]);
  });

  test('again gives the same event, writes nothing, and destroys what a crash left', async () => {
    await write(STREAM, ...talked);
    const first = await recordErasure(context, STREAM, REQUEST, actor);
    const [id] = first.key_ids;
    expect((await context.store.keys.examine([id!])).get(id!)).toMatchObject({ id });
    const second = await eraseStream(context, STREAM, { reason: 'retention' }, actor);
    expect(second).toEqual({ ...first, again: true });
    expect(await isErased(STREAM)).toBe(true);
  });

  test('reads what others append meanwhile, and no event twice', async () => {
    await write(STREAM, sessionStarted(), turnStarted(1));
    let appends = 0;
    const reads: (number | undefined)[] = [];
    const { append, readStream } = context.store;
    const busy = over({
      async append(...given) {
        if ((appends += 1) === 1) {
          const head = { revision: 1, hash: JSON.parse((await stored(STREAM))[1]!.metadata).hash };
          const call = await prepareEvents(context, authorOf(actor), {}, [toolCalled(1)]);
          await appendEvents({ append }, { stream: STREAM, head }, call);
        }
        return append(...given);
      },
      readStream(stream, options) {
        if (stream === STREAM && options.direction === 'forwards') reads.push(options.from);
        return readStream(stream, options);
      },
    });
    const { key_ids } = await eraseStream(busy, STREAM, REQUEST, actor);
    expect(key_ids).toHaveLength(2);
    expect(await isErased(STREAM)).toBe(true);
    expect(reads).toEqual([0, 2, 2, 3]);
  });

  test('is refused where there is no such stream, and leaves no note', async () => {
    await expect(eraseStream(context, STREAM, REQUEST, actor)).rejects.toMatchObject({
      code: 'session_missing',
    });
    expect(await begun()).toEqual([]);
  });
});

const damage = (sql: string): void => {
  const database = new DatabaseSync(join(fixture.folder, 'events.db'));
  database.exec(sql);
  database.close();
};

describe('a damaged stream', () => {
  test.each([
    [
      'whose beginning is missing',
      `DELETE FROM events WHERE revision = 0`,
      /revision 0 is missing/,
    ],
    ['with a gap', `DELETE FROM events WHERE revision = 2`, /revision 2 is missing/],
    [
      'with what is no JSON',
      `UPDATE events SET data = '{"a":' || data WHERE revision = 1`,
      /1 can't/,
    ],
    [
      'with another type',
      `UPDATE events SET type = 'agent.dreamt.v1' WHERE revision = 3`,
      /3 can't/,
    ],
  ])('%s is erased as far as it can be read, and that is told', async (_what, sql, told) => {
    const { key } = await write(STREAM, ...talked);
    damage(`${sql} AND stream = '${STREAM}'`);
    const erased = await eraseStream(context, STREAM, REQUEST, actor);
    expect(erased.unread).toMatch(told);
    expect(erased.key_ids).toEqual([key!.id]);
    expect((await typesOf(STREAM)).at(-1)).toBe('session.erased.v1');
    const found = await context.store.keys.find(new Set([key!.id]));
    expect(found.get(key!.id)).toBeUndefined();
    expect((await eraseStream(context, STREAM, REQUEST, actor)).again).toBe(true);
  });

  test('that the store shows from its end on alone is erased with the keys that stand there', async () => {
    const { key } = await write(STREAM, ...talked);
    const { readStream } = context.store;
    const cut = over({
      readStream: async (stream, options) => {
        if (stream === STREAM && options.direction === 'forwards')
          throw new TurnlogError('stream_damaged', 'It was cut.');
        return readStream(stream, options);
      },
    });
    const erased = await eraseStream(cut, STREAM, REQUEST, actor);
    expect(erased).toMatchObject({ key_ids: [key!.id], unread: expect.any(String) });
    expect(await isErased(STREAM)).toBe(true);
  });
});

test('nothing is erased, and no key destroyed, where the account’s own stream is damaged: it may be held', async () => {
  await write(STREAM, ...talked);
  damage(`DELETE FROM events WHERE stream = '${ACCOUNT}' AND revision = 0`);
  await expect(eraseStream(context, STREAM, REQUEST, actor)).rejects.toMatchObject({
    code: 'erasure_refused',
    message: expect.stringContaining(`The stream ${ACCOUNT} is damaged`),
  });
  expect([await isErased(STREAM), await begun()]).toEqual([false, []]);
});

test('a text whose box names a destroyed key is not taken for erased where no erasure says so', async () => {
  const { key } = await write(STREAM, ...talked);
  await eraseStream(context, STREAM, REQUEST, actor);
  const other = 'session-session_2';
  await write(other, ...talked);
  damage(
    `UPDATE events SET data = replace(data, '"box":"' || substr(data, instr(data, '"box":"') + 7, 16), '"box":"${key!.id}')
     WHERE stream = '${other}' AND revision = 3`,
  );
  await expect(
    readPage(context, other, { direction: 'forwards', limit: 10 }),
  ).rejects.toMatchObject({
    code: 'stream_damaged',
    message: expect.stringContaining('revision 3 is destroyed, but the stream records no erasure'),
  });
  // What was erased is read as such, also in pages that the erasure is not in.
  const [first] = await readPage(context, STREAM, { direction: 'forwards', from: 1, limit: 1 });
  expect(first!.recorded.erased).toBe(true);
  expect(context.damaged.list()).toMatchObject([{ stream: other, revision: 3 }]);
  // Nor do the read models show it as an empty text.
  const log = withOpenTexts(context.store, context.store.keys);
  for await (const batch of log.subscribe({ after: undefined, batchSize: 100, signal: never })) {
    const parked = planBatch(batch.events).filter(({ error }) => error !== undefined);
    expect(parked.map(({ stored: { stream, revision } }) => [stream, revision])).toEqual([
      [other, 3],
    ]);
    expect(parked[0]!.error).toMatch(/destroyed, and no erasure of the stream says so/);
    break;
  }
  // It can be erased as any damaged stream can.
  await eraseStream(context, other, REQUEST, actor);
  expect((await typesOf(other)).at(-1)).toBe('session.erased.v1');
});

describe('an erasure that was left', () => {
  let lines: object[] = [];
  beforeEach(() => void (lines = []));
  const logger = { warn: (fields: object) => void lines.push(fields) };
  const finisher = (now?: () => number, changes: Partial<HandleContext> = {}) =>
    createErasureFinisher(
      {
        ...context,
        ...changes,
        logger,
        noticedMs: 0,
        readModelsAt: async () => shown(),
        dependentsAt: async () => NO_DEPENDENTS,
      },
      now,
    );
  /** Finishes what an earlier process left. */
  async function finishLeft(changes?: Partial<HandleContext>): Promise<void> {
    const { takeOver, finish } = finisher(undefined, changes);
    await takeOver();
    await finish(never);
  }
  const withoutLog = () => over({ append: () => Promise.reject(storeUnavailableError('away')) });

  test('because the log was away is noted, and done when it is back', async () => {
    await write(STREAM, ...talked);
    await expect(eraseStream(withoutLog(), STREAM, REQUEST, actor)).rejects.toMatchObject({
      code: 'store_unavailable',
    });
    expect([await begun(), await isErased(STREAM)]).toEqual([[STREAM], false]);
    await finishLeft();
    expect([await begun(), await isErased(STREAM)]).toEqual([[], true]);
    const { metadata } = (await stored(STREAM)).at(-1)!;
    expect(JSON.parse(metadata)).toMatchObject(actor);
  });

  test('is finished for the reason for which it was begun, by whoever began it', async () => {
    const sweeper = { ...actor, key_id: 'system', request_id: 'retention' };
    await setRetention(context, actor, { maximum_days: 1 });
    await write(STREAM, ...talked);
    const later = { clock: { now: () => Date.UTC(2026, 10, 25) } };
    const grounds = { reason: 'retention', note: 'n' } as const;
    await eraseStream({ ...withoutLog(), ...later }, STREAM, grounds, sweeper).catch(
      () => undefined,
    );
    await finishLeft(later);
    const last = (await stored(STREAM)).at(-1)!;
    expect(JSON.parse(last.data)).toMatchObject(grounds);
    expect(JSON.parse(last.metadata)).toMatchObject(sweeper);
  });

  test('and is refused by now is told once and given up', async () => {
    damage(`DELETE FROM events WHERE stream = '${ACCOUNT}' AND revision = 0`);
    await context.store.keys.beginErasure(ACCOUNT, serializeErasureReason(REQUEST, actor));
    const { takeOver, finish, unfinished } = finisher();
    await takeOver();
    await finish(never);
    await finish(never);
    expect([await begun(), lines, unfinished()]).toEqual([
      [],
      [{ stream: ACCOUNT, err: expect.objectContaining({ code: 'erasure_refused' }) }],
      undefined,
    ]);
  });

  test('and fails each time is told once, tried ever later, and keeps no other from its end', async () => {
    await write(STREAM, ...talked);
    const broken = 'session-session_0';
    await context.store.keys.beginErasure(broken, serializeErasureReason(REQUEST, actor));
    await context.store.keys.beginErasure(STREAM, serializeErasureReason(REQUEST, actor));
    let [now, reads] = [0, 0];
    const { readStream } = context.store;
    const store: HandleContext['store'] = {
      ...context.store,
      readStream(stream, options) {
        if (stream !== broken) return readStream(stream, options);
        reads += 1;
        return Promise.reject(new Error('no'));
      },
    };
    const { takeOver, finish, unfinished } = finisher(() => now, { store });
    await takeOver();
    for (; now < 3_600_000; now += 2_000) await finish(never);
    // Two of each attempt.
    expect(reads).toBeLessThan(40);
    expect(reads).toBeGreaterThan(10);
    expect([await begun(), await isErased(STREAM)]).toEqual([[broken], true]);
    expect(lines).toHaveLength(2);
    expect(unfinished()).toEqual({
      count: 1,
      reason: `${broken}: It failed; see the log for the reason.`,
    });
    await context.store.keys.endErasure(broken, []);
    await finish(never);
    expect(unfinished()).toBeUndefined();
  });

  test('because the key store was away is finished with the event that is there', async () => {
    await write(STREAM, ...talked);
    const { keys } = context.store;
    const away = over({
      keys: { ...keys, endErasure: () => Promise.reject(storeUnavailableError('away')) },
    });
    await expect(eraseStream(away, STREAM, REQUEST, actor)).rejects.toMatchObject({
      code: 'store_unavailable',
    });
    expect((await typesOf(STREAM)).at(-1)).toBe('session.erased.v1');
    const before = await stored(STREAM);
    await finishLeft();
    expect([await begun(), await isErased(STREAM)]).toEqual([[], true]);
    expect(await stored(STREAM)).toEqual(before);
  });

  test('is not begun at all while the key store is away', async () => {
    await write(STREAM, ...talked);
    const away = over({
      keys: {
        ...context.store.keys,
        beginErasure: () => Promise.reject(storeUnavailableError('away')),
      },
    });
    await expect(eraseStream(away, STREAM, REQUEST, actor)).rejects.toMatchObject({
      code: 'store_unavailable',
    });
    expect(await typesOf(STREAM)).not.toContain('session.erased.v1');
  });

  test('by an earlier process is taken over at once, though a sweep has seen it before', async () => {
    await write(STREAM, ...talked);
    await context.store.keys.beginErasure(STREAM, serializeErasureReason(REQUEST, actor));
    const { takeOver, finish } = finisher(() => 0);
    await finish(never);
    expect(await begun()).toEqual([STREAM]);
    await takeOver();
    await finish(never);
    expect([await begun(), await isErased(STREAM)]).toEqual([[], true]);
  });

  test('is left alone at first: the process that began it may be at work on it', async () => {
    await write(STREAM, ...talked);
    let now = 0;
    const { takeOver, finish } = finisher(() => now);
    await takeOver();
    await context.store.keys.beginErasure(STREAM, serializeErasureReason(REQUEST, actor));
    await finish(never);
    now = 29_000;
    await finish(never);
    expect(await begun()).toEqual([STREAM]);
    now = 31_000;
    await finish(never);
    expect([await begun(), await isErased(STREAM)]).toEqual([[], true]);
  });
});

const rowsOf = <Row>(...rows: Row[]) => ({ rows, more: false });
const parkedIn = (...names: string[]) => ({
  count: names.length,
  streams: names.map((stream) => ({
    stream,
    revision: 0,
    event_type: 'session.started.v1',
    error: 'x',
  })),
});
/** What the read models show of one account. */
const shown = (changes: Partial<OwnedStreamQueries> = {}): OwnedStreamQueries => ({
  ...NONE,
  listSessions: async () => rowsOf(),
  listAgents: async () => rowsOf(),
  ...changes,
});
const eraseAll = (
  readModels: OwnedStreamQueries,
  options: Partial<Parameters<typeof eraseAccount>[2]> = {},
  onErased?: (erased: ErasedStream) => void,
) =>
  eraseAccount(
    { ...context, onErased, noticedMs: 0, readModelsAt: async () => readModels },
    actor,
    {
      signal: never,
      ...options,
    },
  );

describe('an account', () => {
  test('is closed first, then all that it owns is erased, what began meanwhile and what no row shows too, then its own key goes', async () => {
    const owned = ['session-session_1', 'session-session_2', 'session-session_3'];
    for (const stream of owned) await write(stream, ...talked);
    const agents = ['agent-agent_1', 'agent-agent_2', 'agent-agent_3'];
    for (const stream of agents) await write(stream, agentCreated());
    for (const stream of ['replay-replay_1', 'replay-replay_2'])
      await write(stream, replayStarted({ instruction: 'a text' }));
    const rows = ['session_1', 'session_2'].map((session_id) => sessionRow({ session_id }));
    const order: string[] = [];
    let looks = 0;
    const readModels = shown({
      listParkedStreams: async () =>
        parkedIn(
          'session-session_3',
          'agent-agent_3',
          'replay-replay_2',
          'session-nowhere',
          'account-acct_2',
        ),
      listReplays: async () => rowsOf({ replay_id: 'replay_1' } as never),
      listSessions: async () => rowsOf(...((looks += 1) === 1 ? rows.slice(0, 1) : rows)),
      // One that was deleted is still there to be erased.
      listAgents: async (_, { deleted }) =>
        rowsOf(
          ...(['agent_1', ...(deleted ? ['agent_2'] : [])].map((agent_id) => ({
            agent_id,
          })) as never[]),
        ),
    });
    const done = await eraseAll(readModels, { note: 'gone' }, ({ stream, again }) => {
      if (!again) order.push(stream);
    });
    expect(done).toMatchObject({
      sessions: 3,
      agents: 3,
      replays: 2,
      unrecorded: [],
      unowned: ['session-nowhere'],
    });
    expect(order).toEqual([
      ACCOUNT,
      // First, so that none of them goes on making sessions.
      'replay-replay_1',
      'session-session_1',
      'agent-agent_1',
      'agent-agent_2',
      'session-session_3',
      'agent-agent_3',
      'replay-replay_2',
      'session-session_2',
    ]);
    for (const stream of order) expect([stream, await isErased(stream)]).toEqual([stream, true]);
    expect(await begun()).toEqual([]);
  });

  test('goes with the key that sessions of it are found with by words', async () => {
    const { keys } = context.store;
    expect(await createWordTokenizer(keys, 'acct_1')).toBeDefined();
    const { erasure } = await eraseAll(shown());
    expect(erasure!.key_ids).toContain(wordsKeyId('acct_1'));
    expect(await createWordTokenizer(keys, 'acct_1')).toBeUndefined();
    expect(await createWordTokenizer(keys, 'acct_2')).toBeDefined();
  });

  test('with more parked streams than can be looked at is refused before anything is erased', async () => {
    const readModels = shown({
      listParkedStreams: async () => ({ ...parkedIn(STREAM), count: 10_001 }),
    });
    await expect(eraseAll(readModels)).rejects.toMatchObject({
      code: 'erasure_refused',
      message: expect.stringContaining('10001 streams are parked'),
    });
    expect([await typesOf(ACCOUNT), await begun()]).toEqual([
      ['account.opened.v1', 'account.key_issued.v1'],
      [],
    ]);
  });

  test('of which a session is gone from the log is erased but for that, which is told', async () => {
    await write(STREAM, ...talked);
    const gone = [
      sessionRow({ session_id: 'session_gone' }),
      sessionRow({ session_id: 'session_1' }),
    ];
    const done = await eraseAll(shown({ listSessions: async () => rowsOf(...gone) }));
    expect(done).toMatchObject({ sessions: 1, unrecorded: ['session-session_gone'] });
    expect([await isErased(STREAM), await isErased(ACCOUNT)]).toEqual([true, true]);
  });

  const own = shown({ listSessions: async () => rowsOf(sessionRow({ session_id: 'session_1' })) });

  test('whose own stream is damaged is erased where its operator says so, as far as it can be read', async () => {
    await write(STREAM, ...talked);
    damage(`DELETE FROM events WHERE stream = '${ACCOUNT}' AND revision = 0`);
    await expect(eraseAll(own)).rejects.toMatchObject({
      code: 'erasure_refused',
      message: expect.stringMatching(/The stream account-acct_1 is damaged.*--damaged/),
    });
    expect([await isErased(STREAM), await begun()]).toEqual([false, []]);
    const done = await eraseAll(own, { damaged: true });
    expect(done).toMatchObject({ sessions: 1, unrecorded: [] });
    expect(done.erasure!.unread).toMatch(/revision 0/);
    expect([await isErased(STREAM), await isErased(ACCOUNT)]).toEqual([true, true]);
    // What a crash had left of it needs nobody to say so again.
    expect(await eraseAll(own)).toMatchObject({ sessions: 0 });
  });

  test('that is damaged stays while what is left of it, or its row, says that it is held', async () => {
    await write(STREAM, ...talked);
    const held = { retention: {}, hold: { held: true }, erased: false } as AccountRow;
    const row = { ...own, findAccount: async () => held };
    damage(`DELETE FROM events WHERE stream = '${ACCOUNT}' AND revision = 0`);
    await expect(eraseAll(row, { damaged: true })).rejects.toMatchObject({
      code: 'erasure_refused',
      message: expect.stringContaining('legal hold'),
    });
    expect([await isErased(STREAM), await begun()]).toEqual([false, []]);
  });

  test('of which nothing is left in the log has its sessions erased', async () => {
    await write(STREAM, ...talked);
    damage(`DELETE FROM events WHERE stream = '${ACCOUNT}'`);
    await expect(eraseAll(own)).rejects.toMatchObject({ code: 'account_missing' });
    const done = await eraseAll(own, { damaged: true });
    expect(done).toMatchObject({ sessions: 1, erasure: undefined, unrecorded: [ACCOUNT] });
    expect([await isErased(STREAM), await begun()]).toEqual([true, []]);
  });
});

describe('where keys were lost', () => {
  /** The keys as they are after some were lost. */
  const without = (...lost: string[]): HandleContext => {
    const { keys } = context.store;
    return over({
      keys: {
        ...keys,
        async find(ids) {
          const missing = lost.find((id) => ids.has(id));
          if (missing !== undefined) throw new TurnlogError('key_missing', `${missing} was lost`);
          return keys.find(ids);
        },
      },
    });
  };

  test.each(['account', 'session'] as const)(
    'that of the %s keeps nobody from erasing the session',
    async (whose) => {
      const { key: ofSession } = await write(STREAM, ...talked);
      const [opened] = await stored(ACCOUNT);
      const ofAccount = JSON.parse(opened!.data).name.box.slice(0, 16);
      const crippled = without(whose === 'account' ? ofAccount : ofSession!.id);
      await eraseStream(crippled, STREAM, REQUEST, actor);
      expect([await isErased(STREAM), await begun()]).toEqual([true, []]);
    },
  );

  test('what the account keeps is known all the same', async () => {
    await setHold(context, actor, { held: true });
    const [opened] = await stored(ACCOUNT);
    await write(STREAM, ...talked);
    const crippled = without(JSON.parse(opened!.data).name.box.slice(0, 16));
    await expect(eraseStream(crippled, STREAM, REQUEST, actor)).rejects.toMatchObject({
      code: 'erasure_refused',
      message: expect.stringContaining('legal hold'),
    });
  });

  test('that of the account keeps nobody from erasing the account', async () => {
    const [opened] = await stored(ACCOUNT);
    const crippled = without(JSON.parse(opened!.data).name.box.slice(0, 16));
    await eraseAccount({ ...crippled, noticedMs: 0, readModelsAt: async () => shown() }, actor, {
      signal: never,
    });
    expect((await typesOf(ACCOUNT)).at(-1)).toBe('account.erased.v1');
  });
});

test('a damaged audit keeps no erasure back, and is named', async () => {
  await write(STREAM, ...talked);
  await write('audit-acct_1', accountAudited());
  damage(`UPDATE events SET type = 'agent.dreamt.v1' WHERE stream = 'audit-acct_1'`);
  await eraseStream(context, STREAM, REQUEST, actor);
  expect([await isErased(STREAM), await begun()]).toEqual([true, []]);
  expect(context.damaged.list()).toMatchObject([{ stream: 'audit-acct_1' }]);
});

describe('what others erase', () => {
  const row = (place: number): ErasureRow => ({
    stream: `session-session_${place}`,
    account_id: 'acct_1',
    key_ids: [],
    position: positionOf(place),
    revision: 1,
  });

  function noticing() {
    let log: ErasureRow[] = [];
    const forgotten: string[] = [];
    const look = createErasurePoller({
      readModels: {
        listErasures: async ({ downTo, limit }) =>
          log
            .filter(({ position }) => downTo === undefined || position >= downTo)
            .toReversed()
            .slice(0, limit),
        listErasuresAfter: async () => [],
      },
      forget: ({ stream }) => void forgotten.push(stream),
      forgetAll: () => void forgotten.push('all'),
    });
    return {
      forgotten,
      look: async (...rows: ErasureRow[]): Promise<string[]> => {
        log = rows;
        await look();
        return forgotten.splice(0);
      },
    };
  }

  test('is forgotten once, and not what was erased before the process began', async () => {
    const { look } = noticing();
    expect(await look(row(1))).toEqual([]);
    expect(await look(row(1))).toEqual([]);
    expect(await look(row(1), row(2), row(3))).toEqual(['session-session_3', 'session-session_2']);
    expect(await look(row(1), row(2), row(3))).toEqual([]);
  });

  test('is forgotten where nothing had ever been erased before', async () => {
    const { look } = noticing();
    expect(await look()).toEqual([]);
    expect(await look(row(1))).toEqual(['session-session_1']);
  });

  test('is all forgotten where it can not be told: another log, or more than are looked at', async () => {
    const { look } = noticing();
    await look(row(5));
    expect(await look(row(2), row(7))).toEqual(['all', 'session-session_7']);
    const many = Array.from({ length: 1_001 }, (_, index) => row(7 + index));
    expect((await look(...many)).slice(0, 1)).toEqual(['all']);
  });
});
