import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { openAccount, setHold, setRetention } from '../../../../shared/accounts/commands.ts';
import { eraseAccount } from '../../../../shared/erasure/eraseAccount.ts';
import { authorOf, prepareEvents } from '../../../../shared/commandHandling/prepareEvents.ts';
import { appendEvents, NO_STREAM } from '../../../../shared/eventlog/append.ts';
import {
  eraseStream,
  recordErasure,
  type ErasureGrounds,
} from '../../../../shared/erasure/eraseStream.ts';
import type { ErasureContext } from '../../../../shared/erasure/retention/requireErasable.ts';
import type { JudgedTime } from '../../../../shared/erasure/retention/judgeClock.ts';
import type { Position } from '../../../../shared/ports/eventStore.ts';
import type { SessionRow } from '../../../../shared/readModels/tables.ts';
import { createDamagedStreams } from '../../../../shared/eventlog/reading/damagedStreams.ts';
import {
  agentCreated,
  sessionRow,
  sessionStarted,
  turnStarted,
} from '../../../support/builders/events.ts';
import { appendMore, appendTo } from '../../../support/stores/projections/projector.ts';
import { eventStoreFixture } from '../../../support/stores/sqlite/sqliteEventStore.ts';

const DAY_MS = 86_400_000;
/** When appendTo records. */
const ACTIVE = Date.UTC(2026, 0, 1);
const actor = { account_id: 'acct_1', key_id: 'key_1', request_id: 'request_1' };
const SESSION = 'session-session_1';
const AGENT = 'agent-agent_1';

let fixture: Awaited<ReturnType<typeof eventStoreFixture>>;
let context: ErasureContext;
let days: number;
/** Done right before the next append to the session. */
let before: (() => Promise<unknown>) | undefined;

beforeEach(async () => {
  fixture = await eventStoreFixture();
  days = 0;
  before = undefined;
  const store = fixture.store();
  context = {
    store: {
      ...store,
      async append(stream, ...given) {
        const first = before;
        before = undefined;
        if (stream === SESSION && first) await first();
        return store.append(stream, ...given);
      },
    },
    damaged: createDamagedStreams(() => undefined),
    clock: { now: () => ACTIVE + days * DAY_MS },
    ids: { uuid: randomUUID, typeId: (prefix) => prefix },
  };
  await openAccount(context, actor, 'Acme');
  await appendTo(store, SESSION, [sessionStarted()]);
  await appendTo(store, AGENT, [agentCreated()]);
});
afterEach(() => fixture.dispose());

const erase = (stream = SESSION, reason: ErasureGrounds['reason'] = 'request') =>
  eraseStream(context, stream, { reason }, actor);
const refused = (words: RegExp) => ({
  code: 'erasure_refused',
  message: expect.stringMatching(words) as unknown,
});
const begun = () => fixture.store().keys.listErasures(10);
const typesOf = async (stream: string) =>
  (await fixture.store().readStream(stream, { direction: 'forwards', limit: 99 })).map(
    ({ type }) => type,
  );

describe('an erasure', () => {
  test('is refused while the clock that says that the minimum is over is not believed', async () => {
    await setRetention(context, actor, { minimum_days: 183 });
    days = 184;
    const judged = (time: JudgedTime) => ({ ...context, judge: async () => time });
    const doubted = judged({ problem: 'The clock has moved ahead.' });
    const request = { reason: 'request' } as const;
    await expect(eraseStream(doubted, SESSION, request, actor)).rejects.toMatchObject(
      refused(/can't be told\. The clock has moved ahead/),
    );
    const early = judged({ now: ACTIVE + 182 * DAY_MS });
    await expect(eraseStream(early, SESSION, request, actor)).rejects.toMatchObject(
      refused(/until 2026-07-03/),
    );
    expect(await begun()).toEqual([]);
    // No time is asked for where none matters.
    expect(await eraseStream(doubted, AGENT, request, actor)).toMatchObject({ again: false });
    await setRetention(context, actor, { minimum_days: null });
    expect(await eraseStream(doubted, SESSION, request, actor)).toMatchObject({ again: false });
  });

  test('is refused until the minimum is over, leaves nothing behind, and is done then', async () => {
    await setRetention(context, actor, { minimum_days: 183 });
    days = 182;
    await expect(erase()).rejects.toMatchObject(refused(/at least 183 days .* until 2026-07-03/));
    expect(await begun()).toEqual([]);
    expect(await typesOf(SESSION)).toEqual(['session.started.v1']);
    // No minimum protects an agent.
    await erase(AGENT);
    days = 183;
    expect(await erase()).toMatchObject({ again: false });
  });

  test('is refused while the account is held, for its agents too, and for good reason only', async () => {
    await setHold(context, actor, { held: true, reason: 'Case 12' });
    days = 9_999;
    for (const stream of [SESSION, AGENT])
      await expect(erase(stream)).rejects.toMatchObject(refused(/legal hold lasts\. An/));
    await setHold(context, actor, { held: false });
    await erase();
    await erase(AGENT);
  });

  test('sees a hold that is set while it is at work', async () => {
    before = async () => {
      await setHold(context, actor, { held: true });
      await appendMore(fixture.store(), SESSION, [turnStarted(1)]);
    };
    await expect(erase()).rejects.toMatchObject(refused(/legal hold/));
    expect(await typesOf(SESSION)).toEqual(['session.started.v1', 'session.turn_started.v1']);
    expect(await begun()).toEqual([]);
  });

  test('that was done gives its receipt again, whatever was set since', async () => {
    const first = await erase();
    await setHold(context, actor, { held: true });
    expect(await erase()).toMatchObject({ again: true, event: first.event });
  });

  test('that is recorded, but left a key, is refused like any other: it may be forged', async () => {
    const talked = 'session-talked';
    const events = [sessionStarted(), turnStarted(1)];
    const facts = await prepareEvents(context, authorOf(actor), NO_STREAM, events);
    await appendEvents(fixture.store(), { stream: talked, head: NO_STREAM }, facts);
    const { key_ids } = await recordErasure(context, talked, { reason: 'request' }, actor);
    const states = () => fixture.store().keys.examine(key_ids);
    await setHold(context, actor, { held: true });
    await expect(erase(talked)).rejects.toMatchObject(refused(/legal hold/));
    await setHold(context, actor, { held: false });
    await setRetention(context, actor, { minimum_days: 183 });
    await expect(erase(talked)).rejects.toMatchObject(refused(/at least 183 days/));
    expect([...(await states()).values()]).toMatchObject([{ id: key_ids[0] }]);
    days = 184;
    expect(await erase(talked)).toMatchObject({ again: true });
    expect([...(await states()).values()]).toEqual(['destroyed']);
  });

  test('by retention happens past the maximum only, as the account says now', async () => {
    days = 99;
    await expect(erase(SESSION, 'retention')).rejects.toMatchObject(refused(/not past/));
    await setRetention(context, actor, { maximum_days: 99 });
    await expect(erase(SESSION, 'retention')).rejects.toMatchObject(refused(/not past/));
    days = 99.5;
    await setHold(context, actor, { held: true });
    await expect(erase(SESSION, 'retention')).rejects.toMatchObject(refused(/legal hold/));
    await setHold(context, actor, { held: false });
    expect(await erase(SESSION, 'retention')).toMatchObject({ again: false });
  });

  /** The context of an account with these sessions. */
  const accountOf = (listSessions: () => SessionRow[]) => ({
    ...context,
    readModelsAt: async () => ({
      listSessions: async () => ({ rows: listSessions(), more: false }),
      listAgents: async () => ({ rows: [], more: false }),
      listParkedStreams: async () => ({ count: 0, streams: [] }),
      findAccount: async () => undefined,
      findAgent: async () => undefined,
      findSession: async () => undefined,
      findWebhook: async () => undefined,
      findReplay: async () => undefined,
      listWebhooks: async () => ({ rows: [], more: false }),
      listReplays: async () => ({ rows: [], more: false }),
    }),
  });

  test('of an account includes sessions that begin while it is noticed, and while others are erased', async () => {
    const ids = ['session_1', 'session_2', 'session_3'];
    for (const id of ids.slice(1))
      await appendTo(fixture.store(), `session-${id}`, [sessionStarted()]);
    const began = performance.now();
    let shownLate = 0;
    const sessions = () => {
      // The first one is shown at once, the second after a moment, the third after the second.
      if (performance.now() - began > 40) shownLate += 1;
      return ids.slice(0, 1 + shownLate).map((session_id) => sessionRow({ session_id }));
    };
    const all = { ...accountOf(sessions), noticedMs: 50 };
    const { sessions: erased } = await eraseAccount(all, actor, {
      signal: new AbortController().signal,
    });
    expect(erased).toBe(3);
  });

  test('of an account includes a session that another process still creates after late read models show it', async () => {
    const late = 'session-late';
    let creating: Promise<Position> | undefined;
    let created: Position | undefined;
    async function create(): Promise<Position> {
      await sleep(40);
      await appendTo(fixture.store(), late, [sessionStarted()]);
      return (created = (await fixture.store().head())!);
    }
    const all = {
      ...context,
      noticedMs: 30,
      appendWaitMs: 400,
      async readModelsAt(position: Position) {
        if ((await typesOf('account-acct_1')).at(-1) === 'account.erased.v1' && !creating) {
          await sleep(80);
          creating = create();
        }
        // They show no more than what is asked for.
        const isShown = created !== undefined && position >= created;
        const row = sessionRow({ session_id: 'late' });
        return accountOf(() => (isShown ? [row] : [])).readModelsAt();
      },
    };
    await eraseAccount(all, actor, { signal: new AbortController().signal });
    await creating;
    expect((await typesOf(late)).at(-1)).toBe('session.erased.v1');
  });

  test('of an account is refused as a whole, before anything is erased', async () => {
    const owned = sessionRow({ updated_at: new Date(ACTIVE).toISOString() });
    const all = accountOf(() => [owned]);
    const eraseAll = () => eraseAccount(all, actor, { signal: new AbortController().signal });
    await setHold(context, actor, { held: true });
    await expect(eraseAll()).rejects.toMatchObject({ code: 'account_held' });
    await setHold(context, actor, { held: false });
    await setRetention(context, actor, { minimum_days: 10 });
    await expect(eraseAll()).rejects.toMatchObject(refused(/at least 10 days/));
    expect(await typesOf(SESSION)).toEqual(['session.started.v1']);
    expect(await typesOf('account-acct_1')).not.toContain('account.erased.v1');
    expect(await begun()).toEqual([]);
  });

  test('that is proven to have happened is repeated within the minimum, and not during a hold', async () => {
    const owned = sessionRow({ updated_at: new Date(ACTIVE).toISOString() });
    const proven = { ...accountOf(() => [owned]), minimumIsOver: true };
    const eraseAll = () => eraseAccount(proven, actor, { signal: new AbortController().signal });
    await setRetention(context, actor, { minimum_days: 10 });
    await setHold(context, actor, { held: true });
    await expect(eraseStream(proven, SESSION, { reason: 'request' })).rejects.toMatchObject(
      refused(/legal hold/),
    );
    await expect(eraseAll()).rejects.toMatchObject({ code: 'account_held' });
    await setHold(context, actor, { held: false });
    await eraseAll();
    expect((await typesOf('account-acct_1')).at(-1)).toBe('account.erased.v1');
  });

  test('of a stream whose account is not known is refused', async () => {
    const stranger = { ...actor, account_id: 'acct_2' };
    await expect(
      eraseStream(context, SESSION, { reason: 'request' }, stranger),
    ).rejects.toMatchObject(refused(/no such account/));
  });
});
