import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { openAccount, setHold } from '../../../../shared/accounts/commands.ts';
import { recordAudit } from '../../../../shared/audit/commands.ts';
import type { HandleContext } from '../../../../shared/commandHandling/handle.ts';
import { appendEvents, NO_STREAM } from '../../../../shared/eventlog/append.ts';
import { createDamagedStreams } from '../../../../shared/eventlog/reading/damagedStreams.ts';
import { accountStream, auditStream } from '../../../../shared/eventlog/streams.ts';
import { storeUnavailableError, TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';
import { accountAudited } from '../../../support/builders/events.ts';
import { eventStoreFixture } from '../../../support/stores/sqlite/sqliteEventStore.ts';

const actor = { account_id: 'acct_1', key_id: 'key_1', request_id: 'request_1' };
const AUDIT = auditStream(actor.account_id);
const read = { action: 'read', subject: 'session-session_1', detail: 'revisions 0 to 9' } as const;

let fixture: Awaited<ReturnType<typeof eventStoreFixture>>;
let context: HandleContext;
/** Events that were read of the store. */
let seen: number;

beforeEach(async () => {
  fixture = await eventStoreFixture();
  const store = fixture.store();
  seen = 0;
  context = {
    store: {
      ...store,
      async readStream(...given) {
        const events = await store.readStream(...given);
        seen += events.length;
        return events;
      },
    },
    damaged: createDamagedStreams(() => undefined),
    clock: { now: () => Date.UTC(2026, 10, 22) },
    ids: { uuid: randomUUID, typeId: (prefix) => prefix },
  };
});
afterEach(() => fixture.dispose());

const audited = () => fixture.store().readStream(AUDIT, { direction: 'forwards', limit: 1_000 });

test('each time is an event of the account, with who and what', async () => {
  await recordAudit(context, actor, read);
  await recordAudit(context, actor, read);
  const events = await audited();
  expect(events.map(({ type, revision, data }) => [type, revision, JSON.parse(data)])).toEqual([
    ['account.audited.v1', 0, read],
    ['account.audited.v1', 1, read],
  ]);
  expect(JSON.parse(events[1]!.metadata)).toMatchObject(actor);
});

test('many at once are all recorded', async () => {
  await Promise.all(Array.from({ length: 30 }, () => recordAudit(context, actor, read)));
  expect(await audited()).toHaveLength(30);
});

test('a long audit makes neither the next entry nor the commands of the account slower', async () => {
  await openAccount(context, actor, 'Acme');
  let head = NO_STREAM;
  for (let batch = 0; batch < 10; batch += 1) {
    const events = Array.from({ length: 500 }, () => ({ id: randomUUID(), ...accountAudited() }));
    const recorded_at = '2026-11-22T00:00:00.000Z';
    const authorship = { ...actor, causation_id: 'c', recorded_at };
    ({ head } = await appendEvents(context.store, { stream: AUDIT, head }, { events, authorship }));
  }
  seen = 0;
  await recordAudit(context, actor, read);
  expect(seen).toBe(1);
  await setHold(context, actor, { held: true });
  expect(seen).toBe(2);
  const [last] = await fixture.store().readStream(AUDIT, { direction: 'backwards', limit: 1 });
  expect(last?.revision).toBe(5_000);
  const held = { direction: 'backwards', limit: 1 } as const;
  expect((await fixture.store().readStream(accountStream('acct_1'), held))[0]?.revision).toBe(1);
});

test('what can not be recorded is unavailable, whatever is wrong with the audit', async () => {
  const failing = (error: Error): HandleContext => ({
    ...context,
    store: {
      ...context.store,
      append: async () => {
        throw error;
      },
    },
  });
  for (const error of [storeUnavailableError('away'), new TurnlogError('key_missing', 'lost')])
    await expect(recordAudit(failing(error), actor, read)).rejects.toMatchObject({
      code: 'store_unavailable',
      retriable: true,
    });
});

test('a damaged audit is named, to who asks and in health, until it takes entries again', async () => {
  await recordAudit(context, actor, read);
  const [first] = await audited();
  const { readStream } = context.store;
  let whole = false;
  const damaged: HandleContext = {
    ...context,
    store: {
      ...context.store,
      readStream: async (...asked) =>
        whole ? readStream(...asked) : [{ ...first!, type: 'agent.dreamt.v1' }],
    },
  };
  await expect(recordAudit(damaged, actor, read)).rejects.toMatchObject({
    code: 'stream_damaged',
    message: expect.stringMatching(/once that is recorded.*The stream audit-acct_1 is damaged/),
  });
  expect(context.damaged.list()).toMatchObject([{ stream: AUDIT }]);
  whole = true;
  await recordAudit(damaged, actor, read);
  expect(context.damaged.list()).toEqual([]);
});
