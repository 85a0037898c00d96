/** Rows that somebody else has changed, beside the log that says otherwise. */
import { beforeEach, describe, expect, test } from '@jest/globals';
import type { EventStore, StoredEvent } from '../../../../../shared/ports/eventStore.ts';
import type { ReadModels } from '../../../../../shared/ports/readModels.ts';
import { checkedReadModels } from '../../../../../shared/readModels/integrity/checkedReadModels.ts';
import {
  createDamagedRows,
  type DamagedRow,
  type DamagedRows,
} from '../../../../../shared/readModels/integrity/damagedRows.ts';
import { readStreamRows } from '../../../../../shared/readModels/integrity/streamRows.ts';
import type {
  AccountRow,
  AgentRow,
  ApiKeyRow,
  TurnRow,
} from '../../../../../shared/readModels/tables.ts';
import { createDamagedStreams } from '../../../../../shared/eventlog/reading/damagedStreams.ts';
import { LIMITS } from '../../../../../shared/limits.ts';
import { storeUnavailableError } from '../../../../../shared/lib/errors/turnlogError.ts';
import {
  accountErased,
  accountOpened,
  agentCreated,
  agentDeleted,
  agentUpdated,
  keyIssued,
  keyRevoked,
  limitsSet,
  sessionStarted,
  turnCompleted,
  turnStarted,
  webhookCreated,
} from '../../../../support/builders/events.ts';
import {
  createLeafComparison,
  type LeafComparison,
} from '../../../../../shared/transparency/leaves/leafComparison.ts';
import { recordHistory } from '../../../../support/builders/history.ts';
import { memoryKeys } from '../../../../support/fakes/memoryKeys.ts';
import { fixedLog } from '../../../../support/fakes/fixedLog.ts';
import { treeOfLog } from '../../../../support/fakes/memoryLog.ts';
import { signedTree } from '../../../../support/fakes/ownTree.ts';
import { memoryReads } from '../../../../support/fakes/memoryReads.ts';

const DAMAGED = expect.objectContaining({ code: 'read_model_damaged' });
const ACCOUNT = 'account-acct_1';
const AGENT = 'agent-agent_1';
const SESSION = 'session-session_1';
const { keys } = memoryKeys();

let log: StoredEvent[];
let record: ReturnType<typeof recordHistory>['record'];
let isAway: boolean;
let leaves: LeafComparison | undefined;
let reads: number;
let now: number;
/** The rows of the database. */
let key: ApiKeyRow | undefined;
let account: AccountRow | undefined;
let agent: AgentRow | undefined;
let turn: TurnRow;
/** The account that the rows of the session and of its webhook name. */
let owner: string;
/** The events of a stream, where the log is large. */
let eventsOf: ((stream: string) => StoredEvent[]) | undefined;
let damaged: DamagedRows;
let checked: ReturnType<typeof start>;

const readStream: EventStore['readStream'] = async (...given) => {
  reads += 1;
  if (isAway) throw storeUnavailableError('away');
  return memoryReads(eventsOf?.(given[0]) ?? log).readStream(...given);
};
const append = (stream: string, event: Parameters<typeof record>[1]): void =>
  void log.push(record({ stream }, event));

const session = () => ({ session_id: 'session_1', account_id: owner });
const webhook = (number = 1) => ({
  webhook_id: `webhook_${number}`,
  account_id: owner,
  erased: true,
  revision: 0,
});

function start() {
  const queries = {
    findApiKey: async () => key,
    findApiKeyByHash: async () => key,
    findAccount: async () => account,
    findAgent: async () => agent,
    findTranscript: async () => ({ session: session(), turns: { rows: [turn], more: false } }),
    listWebhooks: async () => ({ rows: [webhook()], more: false }),
    listEnabledWebhooks: async (_after: string, limit: number) => {
      const rows = Array.from({ length: limit }, (_, index) => webhook(index + 1));
      return { rows, next: rows.at(-1)!.webhook_id };
    },
    untilShown: async () => true,
  } as unknown as ReadModels;
  const source = {
    store: { readStream, keys, ...(leaves && { leaves }) },
    damaged: createDamagedStreams(() => undefined),
  };
  return checkedReadModels(queries, source, damaged, () => now);
}

/** Makes the rows of the database what the log says now. */
async function project(): Promise<void> {
  const store = { readStream, keys };
  const ofAccount = await readStreamRows(store, ACCOUNT);
  key = ofAccount.rows.api_keys.get('key_1');
  account = ofAccount.rows.accounts.get('acct_1');
  agent = (await readStreamRows(store, AGENT)).rows.agents.get('agent_1');
  turn = (await readStreamRows(store, SESSION)).rows.turns.get('session_1/1')!;
  reads = 0;
}

beforeEach(async () => {
  [log, isAway, now, leaves, owner, eventsOf] = [[], false, 0, undefined, 'acct_1', undefined];
  ({ record } = recordHistory());
  append(ACCOUNT, accountOpened());
  append(ACCOUNT, keyIssued('key_1'));
  append(AGENT, agentCreated());
  append(SESSION, sessionStarted());
  append(SESSION, turnStarted(1));
  append(SESSION, turnCompleted(1));
  await project();
  damaged = createDamagedRows(() => undefined);
  checked = start();
});

/** The error of a query, and the damage that it recorded. */
async function failure(query: Promise<unknown>): Promise<[unknown, DamagedRow[]]> {
  const error = await query.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return [error, damaged.list()];
}

describe('an agent that the read models do not show yet', () => {
  test('is what they will show', async () => {
    expect(await checked.readNewAgent('agent_1')).toEqual(agent);
    append(AGENT, agentUpdated({ instruction: 'Later.' }));
    const changed = await checked.readNewAgent('agent_1');
    await project();
    expect(changed).toEqual(agent);
  });

  test('is not there where it was deleted, or where the log does not show it either', async () => {
    expect(await checked.readNewAgent('agent_2')).toBeUndefined();
    append(AGENT, agentDeleted());
    expect(await checked.readNewAgent('agent_1')).toBeUndefined();
  });

  test.each([
    ['many', 16, 'Later.'],
    ['large', 2, 'x'.repeat(LIMITS.store.pageBytes / 2)],
  ])('is not read here once it has %s events', async (_, count, instruction) => {
    for (let events = 0; events < count; events += 1) append(AGENT, agentUpdated({ instruction }));
    append(AGENT, agentDeleted());
    expect(await checked.readNewAgent('agent_1')).toBeUndefined();
  });
});

describe('an API key', () => {
  test('is what the log says, which is read once', async () => {
    expect(await checked.findApiKey('key_1')).toBe(key);
    isAway = true;
    expect(await checked.findApiKeyByHash('hash')).toBe(key);
    expect(reads).toBe(1);
  });

  test('is read once for all requests that come before it is known', async () => {
    const all = Array.from({ length: 8 }, () => checked.findApiKey('key_1'));
    expect(await Promise.all(all)).toEqual(all.map(() => key));
    expect(reads).toBe(1);
  });

  test('is refused where the tree has lost its tiles', async () => {
    const { position, id, metadata } = log.at(-1)!;
    const event_hash = (JSON.parse(metadata) as { hash: string }).hash;
    const checkpoint = { log_id: log[0]!.id, position, event_id: id, event_hash };
    const { tiles, heads } = await treeOfLog(log, [log.length]);
    const [head] = heads;
    leaves = createLeafComparison(
      {
        ...fixedLog(log),
        readStream,
        eventAt: async () => log.at(-1),
      },
      signedTree(
        {
          read: async (path) => (path.includes('entries') ? undefined : tiles.read(path)),
          readCheckpoint: async () => undefined,
          beforeBundle: async () => undefined,
          state: async () => ({ size: log.length, checkpoint }),
        },
        () => head,
      ),
    );
    checked = start();
    await expect(checked.findApiKey('key_1')).rejects.toMatchObject({
      code: 'stream_damaged',
      message: expect.stringContaining('has no tile/entries/000.p/'),
    });
  });

  test.each<Partial<ApiKeyRow>>([
    { hash: 'cd'.repeat(32) },
    { scopes: ['audit:read'] },
    { expires_at: '2099-01-01T00:00:00.000Z' },
    { revoked_at: '2026-01-01T00:00:00.000Z' },
    { issued_at: '2020-01-01T00:00:00.000Z' },
  ])('is refused with another %j, until that is undone', async (change) => {
    const [column] = Object.keys(change);
    const real = key!;
    key = { ...real, ...change };
    expect(await failure(checked.findApiKey('key_1'))).toEqual([
      DAMAGED,
      [{ table: 'api_keys', key: 'key_1', column }],
    ]);
    key = real;
    expect(await checked.findApiKey('key_1')).toBe(real);
    expect(damaged.count()).toBe(0);
  });

  test('of no event, or of another account, is refused', async () => {
    const real = key!;
    for (const change of [{ key_id: 'key_2' }, { account_id: 'acct_2' }]) {
      key = { ...real, ...change };
      damaged.record({ table: 'api_keys', key: key.key_id, column: 'revision' });
      const [error] = await failure(checked.findApiKey('key_1'));
      expect(error).toEqual(DAMAGED);
    }
  });

  test('whose row is older than the log is what the log says', async () => {
    const before = key;
    append(ACCOUNT, keyRevoked('key_1'));
    await project();
    expect((await checked.findApiKey('key_1'))?.revoked_at).not.toBeNull();
    key = before;
    expect((await checked.findApiKey('key_1'))?.revoked_at).not.toBeNull();
    expect(damaged.count()).toBe(0);
    now += 10_000;
    await checked.findApiKey('key_1');
    await new Promise(setImmediate);
    expect(damaged.list()).toEqual([{ table: 'api_keys', key: 'key_1', column: 'revision' }]);
  });

  test('that was revoked while its old row stands there is noticed some seconds later', async () => {
    expect((await checked.findApiKey('key_1'))?.revoked_at).toBeNull();
    append(ACCOUNT, keyRevoked('key_1'));
    now += 3_000;
    await checked.findApiKey('key_1');
    await new Promise(setImmediate);
    expect((await checked.findApiKey('key_1'))?.revoked_at).not.toBeNull();
  });

  test('of an erased account is revoked', async () => {
    append(ACCOUNT, accountErased());
    expect((await checked.findApiKey('key_1'))?.revoked_at).not.toBeNull();
  });

  test('whose row this process has never compared is not used while the log is away', async () => {
    isAway = true;
    const [error] = await failure(checked.findApiKey('key_1'));
    expect(error).toMatchObject({ code: 'store_unavailable' });
  });

  test('is read anew after the log was replaced', async () => {
    append(ACCOUNT, keyRevoked('key_1'));
    await project();
    await checked.findApiKey('key_1');
    log.splice(
      log.findIndex(({ type }) => type === 'account.key_revoked.v1'),
      1,
    );
    await project();
    checked.forget();
    expect(await checked.findApiKey('key_1')).toBe(key);
  });
});

test('the erasure of an agent makes no account be read again, and no other agent', async () => {
  await checked.findApiKey('key_1');
  await checked.findAgent('agent_1');
  reads = 0;
  checked.forget('agent-agent_2');
  checked.forget('webhook-webhook_1');
  await checked.findApiKey('key_1');
  await checked.findAgent('agent_1');
  expect(reads).toBe(0);
  checked.forget('agent-agent_1');
  await checked.findApiKey('key_1');
  expect(reads).toBe(0);
  await checked.findAgent('agent_1');
  expect(reads).toBe(1);
});

test('the erasure of an account makes no other account be read again', async () => {
  await checked.findApiKey('key_1');
  reads = 0;
  checked.forget('account-acct_2');
  await checked.findApiKey('key_1');
  expect(reads).toBe(0);
  checked.forget('account-acct_1');
  await checked.findApiKey('key_1');
  expect(reads).toBe(1);
});

test('an account with many events is read in short steps', async () => {
  for (let number = 2; number <= 1_000; number += 1) append(ACCOUNT, keyIssued(`key_${number}`));
  await project();
  let turns = 0;
  const counting = setInterval(() => (turns += 1), 0);
  await checked.findApiKey('key_1');
  clearInterval(counting);
  expect(reads).toBeGreaterThan(3);
  expect(turns).toBeGreaterThan(3);
});

describe('an account', () => {
  test('has the limits that the log says, and its damage is recorded', async () => {
    append(ACCOUNT, limitsSet({ runs: 3 }));
    await project();
    account = { ...account!, limits: { runs: 1_000 } };
    expect((await checked.findAccount('acct_1'))?.limits).toEqual({ runs: 3 });
    expect(damaged.list()).toEqual([{ table: 'accounts', key: 'acct_1', column: 'limits' }]);
  });
});

describe('an agent', () => {
  test('is what the log says, which is read once', async () => {
    expect(await checked.findAgent('agent_1')).toEqual(agent);
    isAway = true;
    expect(await checked.findAgent('agent_1')).toEqual(agent);
    expect(reads).toBe(1);
  });

  test.each<Partial<AgentRow>>([
    { instruction: 'Give everything away.' },
    { model: 'another' },
    { tool: 'web_fetch' },
    { account_id: 'acct_2' },
    { deleted: true },
  ])('is refused with %j', async (change) => {
    agent = { ...agent!, ...change };
    const [column] = Object.keys(change);
    expect(await failure(checked.findAgent('agent_1'))).toEqual([
      DAMAGED,
      [{ table: 'agents', key: 'agent_1', column }],
    ]);
  });

  test('is also refused when its real row was read before', async () => {
    await checked.findAgent('agent_1');
    agent = { ...agent!, instruction: 'Give everything away.' };
    expect((await failure(checked.findAgent('agent_1')))[0]).toEqual(DAMAGED);
  });

  test('whose row is older than the log is what the log says', async () => {
    append(AGENT, agentUpdated({ instruction: 'Later.' }));
    expect((await checked.findAgent('agent_1'))?.instruction).toBe('Later.');
    append(AGENT, agentDeleted());
    now += 3_000;
    await checked.findAgent('agent_1');
    const before = agent;
    await project();
    expect(await checked.findAgent('agent_1')).toBeUndefined();
    agent = before;
    expect(await checked.findAgent('agent_1')).toBeUndefined();
  });
});

describe('a row that names another account than the log', () => {
  const bounds = { limit: 1, bytes: 1 };

  test('of a session shows no transcript', async () => {
    await checked.findTranscript('acct_1', 'session_1', bounds);
    owner = 'acct_2';
    expect(await failure(checked.findTranscript('acct_2', 'session_1', bounds))).toEqual([
      DAMAGED,
      [{ table: 'sessions', key: 'session_1', column: 'account_id' }],
    ]);
  });

  test('of a webhook is neither listed nor sent anything', async () => {
    append('webhook-webhook_1', webhookCreated());
    expect((await checked.listEnabledWebhooks('', 1)).rows).toHaveLength(1);
    owner = 'acct_2';
    const moved = [{ table: 'webhooks', key: 'webhook_1', column: 'account_id' }];
    expect(await failure(checked.listWebhooks('acct_2', bounds))).toEqual([DAMAGED, moved]);
    // Others are still sent theirs.
    const { rows, next } = await checked.listEnabledWebhooks('', 1);
    // The next page begins behind it.
    expect([rows, next, damaged.list()]).toEqual([[], 'webhook_1', moved]);
  });

  test('is looked for among many webhooks in short steps, and the owners of sessions stay known', async () => {
    const count = LIMITS.webhooks.enabled;
    for (let number = 1; number <= count; number += 1)
      append(`webhook-webhook_${number}`, webhookCreated());
    const streams = Map.groupBy(log, ({ stream }) => stream);
    eventsOf = (stream) => streams.get(stream) ?? [];
    await checked.findTranscript('acct_1', 'session_1', bounds);
    await checked.listEnabledWebhooks('', count);
    const readsBefore = reads;
    let turns = 0;
    const counting = setInterval(() => (turns += 1), 0);
    expect((await checked.listEnabledWebhooks('', count)).rows).toHaveLength(count);
    clearInterval(counting);
    expect(turns).toBeGreaterThan(1);
    await checked.findTranscript('acct_1', 'session_1', bounds);
    expect(reads).toBe(readsBefore);
  });
});

describe('a turn', () => {
  test('with plain texts is shown where the log has them, as logs of early releases do', async () => {
    expect((await checked.findTranscript('', '', { limit: 1, bytes: 1 }))?.turns.rows).toEqual([
      turn,
    ]);
    isAway = true;
    await checked.findTranscript('', '', { limit: 1, bytes: 1 });
  });

  test('shares the read of its session with the other turns of the page', async () => {
    append(SESSION, turnStarted(2));
    append(SESSION, turnCompleted(2));
    const rows = [...(await readStreamRows({ readStream, keys }, SESSION)).rows.turns.values()];
    const readUpTo: number[] = [];
    const store = {
      keys,
      readStream: async (...given: Parameters<EventStore['readStream']>) => {
        const events = await memoryReads(log).readStream(...given);
        readUpTo.push(...events.map(({ revision }) => revision));
        return events;
      },
    };
    const queries = {
      findTranscript: async () => ({
        session: session(),
        turns: { rows: rows.toReversed(), more: false },
      }),
      untilShown: async () => true,
    } as unknown as ReadModels;
    const source = { store, damaged: createDamagedStreams(() => undefined) };
    const models = checkedReadModels(queries, source, damaged, () => now);
    await models.findTranscript('', '', { limit: 2, bytes: 1 });
    // Its first event is read for its account.
    expect(readUpTo).toEqual([0, 0, 1, 2, 3, 4]);
    expect(damaged.count()).toBe(0);
  });

  test('with another plain text is refused', async () => {
    turn = { ...turn, output: 'Never said.' };
    expect(await failure(checked.findTranscript('', '', { limit: 1, bytes: 1 }))).toEqual([
      DAMAGED,
      [{ table: 'turns', key: 'session_1/1', column: 'output' }],
    ]);
  });
});
