import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { patchAgent } from '../../../shared/agents/changeAgent.ts';
import { authorOf } from '../../../shared/commandHandling/prepareEvents.ts';
import { handleLoaded } from '../../../shared/commandHandling/handle.ts';
import { cancelReplay } from '../../../shared/replays/commands.ts';
import { sessionTarget } from '../../../shared/sessions/history/loadSession.ts';
import { changeWebhook, disableFailingWebhook } from '../../../shared/webhooks/changeWebhook.ts';
import type { DomainEvent } from '../../../shared/eventlog/eventTypes.ts';
import {
  agentCreated,
  replayEnded,
  replayStarted,
  replayTurnsCompared,
  sessionStarted,
  turnCompleted,
  turnStarted,
  webhookCreated,
  webhookDisabled,
} from '../../support/builders/events.ts';
import { handleContext, writeStream } from '../../support/stores/handleContext.ts';
import {
  sqliteEventStoreFixture,
  type SqliteEventStoreFixture,
} from '../../support/stores/sqlite/sqliteEventStore.ts';

const ACTOR = { account_id: 'acct_1', key_id: 'key_1', request_id: 'request_1' };
const SESSION = `session_${'0'.repeat(26)}`;
const WEBHOOK = `webhook_${'0'.repeat(26)}`;
const TARGET = { webhook_id: WEBHOOK };
const REPLAY = `replay_${'0'.repeat(26)}`;
const CHANGES = 40;
/** The stream is read from its end; of a session, its first event too. */
const FEW = 10;

let fixture: SqliteEventStoreFixture;
let read = 0;
beforeEach(async () => {
  fixture = await sqliteEventStoreFixture();
  read = 0;
});
afterEach(() => fixture.dispose());

/** What commands need, over a store that counts the events that are read. */
function counted(rows: Record<string, object>) {
  const store = fixture.store();
  const row = async () => ({ account_id: ACTOR.account_id, ...rows });
  const context = handleContext(
    {
      ...store,
      async readStream(...asked) {
        const events = await store.readStream(...asked);
        read += events.length;
        return events;
      },
    },
    0,
  );
  return {
    ...context,
    webhooks: { allowPrivate: true, findUnreachable: async () => undefined },
    catalogue: {},
    readModels: { findAgent: row, findWebhook: row, findReplay: row, untilShown: async () => true },
  } as never;
}

const write = (stream: string, ...events: DomainEvent[]) =>
  writeStream(handleContext(fixture.store(), 0), ACTOR, stream, events);

/** The most events that one of many changes has read. */
async function mostRead(change: (nth: number) => Promise<unknown>): Promise<number> {
  let most = 0;
  for (let nth = 1; nth <= CHANGES; nth += 1) {
    read = 0;
    await change(nth);
    most = Math.max(most, read);
  }
  return most;
}

const lastRevision = async (stream: string): Promise<number | undefined> =>
  (await fixture.store().readStream(stream, { direction: 'backwards', limit: 1 }))[0]?.revision;

const changeName = (
  context: Parameters<typeof patchAgent>[0],
  target: Parameters<typeof patchAgent>[2],
  name: string,
) =>
  patchAgent(context, ACTOR, target, {
    patch: { name },
    checkFormat() {
      throw new Error('the patch has no response format');
    },
  });

test('a change of an agent reads as much after many changes', async () => {
  await write('agent-1', agentCreated());
  const context = counted({});
  const target = { agent_id: '1' };
  expect(await mostRead((nth) => changeName(context, target, `${nth}`))).toBe(1);
  expect(await lastRevision('agent-1')).toBe(CHANGES);
});

test('concurrent changes of an agent are each decided once', async () => {
  await write('agent-1', agentCreated());
  const context = counted({});
  const names = Array.from({ length: CHANGES }, (_, nth) => `${nth}`);
  await Promise.all(names.map((name) => changeName(context, { agent_id: '1' }, name)));
  expect(read).toBe(CHANGES);
  expect(await lastRevision('agent-1')).toBe(CHANGES);
});

test('a change of a webhook reads as much after many changes', async () => {
  const stream = `webhook-${WEBHOOK}`;
  await write(stream, webhookCreated());
  const context = counted({});
  const change = (nth: number) =>
    changeWebhook(
      context,
      ACTOR,
      TARGET,
      nth % 3 === 0 ? { url: `https://example.com/${nth}` } : { enabled: nth % 3 === 2 },
    );
  // The first event, which says whose it is, and the last one.
  expect(await mostRead(change)).toBe(2);
  expect(await lastRevision(stream)).toBe(CHANGES);
});

test('a webhook whose last event is of an early release is read as a whole, once', async () => {
  const stream = `webhook-${WEBHOOK}`;
  await write(stream, webhookCreated(), webhookDisabled('failing'));
  const context = counted({});
  await changeWebhook(context, ACTOR, TARGET, { enabled: true });
  expect(read).toBe(4);
  const types = ['turnlog.session.turn_completed.v1'];
  expect(await mostRead(() => changeWebhook(context, ACTOR, TARGET, { types }))).toBe(2);
  const [last] = await fixture.store().readStream(stream, { direction: 'backwards', limit: 1 });
  expect(JSON.parse(last!.data)).toMatchObject({ types, enabled: true });
});

test('a webhook that was changed since it was tried is not given up', async () => {
  const stream = `webhook-${WEBHOOK}`;
  await write(stream, webhookCreated());
  const context = counted({});
  await changeWebhook(context, ACTOR, TARGET, { url: 'https://example.com/other' });
  const tried = (revision: number) =>
    ({ webhook_id: WEBHOOK, account_id: ACTOR.account_id, revision }) as never;
  await disableFailingWebhook(context, tried(0), 'failing');
  expect(await lastRevision(stream)).toBe(1);
  await disableFailingWebhook(context, tried(1), 'failing');
  expect(await lastRevision(stream)).toBe(2);
});

test('a description of a session reads as much after many descriptions', async () => {
  const stream = `session-${SESSION}`;
  await write(stream, sessionStarted(), turnStarted(1), turnCompleted(1));
  const context = counted({});
  const describe = (nth: number) =>
    handleLoaded(context, sessionTarget(SESSION), () => ({
      author: authorOf(ACTOR),
      command: {
        type: 'describe_session' as const,
        before: { title: null, labels: {} },
        after: { title: `${nth}`, labels: {} },
      },
    }));
  expect(await mostRead(describe)).toBeLessThan(FEW);
  const { state } = await sessionTarget(SESSION).load(context);
  expect(state).toMatchObject({ status: 'idle', turn: 1 });
});

test('cancelling a replay that has ended reads only whose it is', async () => {
  await write(`replay-${REPLAY}`, replayStarted(), replayTurnsCompared(), replayEnded());
  const context = counted({ status: 'completed' as never });
  expect(await mostRead(() => cancelReplay(context, ACTOR, REPLAY))).toBe(1);
});
