import { expect, test } from '@jest/globals';
import { openAccount } from '../../../../../shared/accounts/commands.ts';
import { serializeErasureReason } from '../../../../../shared/erasure/eraseStream.ts';
import { presentHealth } from '../../../../../services/api/health/presenter.ts';
import {
  erasedKeysPart,
  unfinishedErasuresPart,
} from '../../../../../services/process/upkeep/erasures.ts';
import { eventually } from '../../../../support/processes/operator.ts';
import { handleContext } from '../../../../support/stores/handleContext.ts';
import { eventStoreFixture } from '../../../../support/stores/sqlite/sqliteEventStore.ts';
import { skipPauses } from '../../../../support/fakes/jumpingClock.ts';

skipPauses();

test('an erasure that can not be finished is told by health until it is', async () => {
  const open = [{ stream: 'session-session_1', why: 'no JSON' }];
  const context = {
    store: { keys: { listErasures: async () => open } },
    logger: { warn: () => undefined, debug: () => undefined, error: () => undefined },
  };
  const part = unfinishedErasuresPart(context as never, {
    api: undefined,
    ownsLog: true,
    appendWaitMs: 0,
  });
  expect(await part.health!()).toEqual({});
  await using _ = part.upkeep!();
  const told = await eventually(
    () => part.health!(),
    ({ erasures }) => erasures !== undefined,
  );
  expect(presentHealth({ ready: true, ...told })).toMatchObject({
    status: 'degraded',
    erasures: { count: 1, reason: 'session-session_1: It failed; see the log for the reason.' },
  });
  open.pop();
  const after = await eventually(
    () => part.health!(),
    ({ erasures }) => erasures === undefined,
  );
  expect(after).toEqual({});
});

test('an account is not erased by read models that do not show all of its streams', async () => {
  const fixture = await eventStoreFixture();
  await using _fixture = { [Symbol.asyncDispose]: fixture.dispose };
  const context = handleContext(fixture.store(), Date.UTC(2026, 10, 22));
  const actor = { account_id: 'acct_1', key_id: 'key_1', request_id: 'request_1' };
  await openAccount(context, actor, 'somebody');
  const { keys } = context.store;
  await keys.beginErasure('account-acct_1', serializeErasureReason({ reason: 'request' }, actor));
  const nothing = { rows: [], more: false };
  const readModels = {
    untilShown: async () => false,
    listParkedStreams: async () => ({ count: 0, streams: [] }),
    listReplays: async () => nothing,
    listSessions: async () => nothing,
    listAgents: async () => nothing,
    listWebhooks: async () => nothing,
  };
  const logger = { warn: () => undefined, debug: () => undefined, error: () => undefined };
  const part = unfinishedErasuresPart({ ...context, readModels, logger } as never, {
    api: undefined,
    ownsLog: true,
    appendWaitMs: 0,
  });
  await part.prepare!(new AbortController().signal);
  await using _upkeep = part.upkeep!();
  const told = await eventually(
    async () => [await part.health!(), await keys.listErasures(10)] as const,
    ([{ erasures }, open]) => erasures !== undefined || open.length === 0,
  );
  expect(told).toMatchObject([
    { erasures: { reason: expect.stringContaining('do not show yet') } },
    [{ stream: 'account-acct_1' }],
  ]);
});

test('a process that serves no API evicts the keys of what others erase', async () => {
  const evicted: unknown[] = [];
  const rows: unknown[] = [];
  const part = erasedKeysPart({
    readModels: { listErasures: async () => rows },
    store: { keys: { evict: (...key: unknown[]) => evicted.push(key) } },
    logger: { warn: () => undefined },
  } as never);
  await part.prepare!(new AbortController().signal);
  rows.push({ stream: 'session-session_1', key_ids: ['key_1'], position: '5' });
  await using _ = part.upkeep!();
  await eventually(
    async () => evicted,
    ({ length }) => length > 0,
  );
  expect(evicted).toEqual([['session-session_1', ['key_1']]]);
});

test('a process that serves no API evicts all keys when others erase more than it reads at a time', async () => {
  let rows: unknown[] = [];
  let evictions = 0;
  const part = erasedKeysPart({
    readModels: { listErasures: async () => rows, listErasuresAfter: async () => [] },
    store: { keys: { evict: () => undefined, evictAll: () => (evictions += 1) } },
  } as never);
  await part.prepare!(new AbortController().signal);
  rows = Array.from({ length: 1_000 }, (_, nth) => ({ position: String(nth), key_ids: [] }));
  await using _ = part.upkeep!();
  await eventually(
    async () => evictions,
    (times) => times > 0,
  );
});
