import { beforeEach, describe, expect, test } from '@jest/globals';
import { LIMITS } from '../../../../shared/limits.ts';
import { storeUnavailableError } from '../../../../shared/lib/errors/turnlogError.ts';
import type { EventStore, StoredEvent } from '../../../../shared/ports/eventStore.ts';
import type { AgentRow, ApiKeyRow } from '../../../../shared/readModels/tables.ts';
import { cacheRowsForOutage } from '../../../../shared/projections/cacheRowsForOutage.ts';
import { skipPauses } from '../../../support/fakes/jumpingClock.ts';

skipPauses();

let now: number;
let away: boolean;
/** What the log holds behind the rows. */
let later: StoredEvent[];
let asked: number;
let key: ApiKeyRow | undefined;
let agent: AgentRow | undefined;
let rows: ReturnType<typeof cacheRowsForOutage>;

async function answer<Row>(row: () => Row): Promise<Row> {
  asked += 1;
  if (away) throw storeUnavailableError('away');
  return row();
}

/** As a store reads: from a revision on. */
const log: Pick<EventStore, 'readStream'> = {
  readStream: async (stream, { from = 0, limit }) =>
    later.filter((event) => event.stream === stream && event.revision >= from).slice(0, limit),
};

const event = (stream: string, revision: number, data: object): StoredEvent => ({
  id: `${stream}-${revision}`,
  stream,
  revision,
  type: 'any',
  data: JSON.stringify(data),
  metadata: '{}',
  position: '' as StoredEvent['position'],
});

beforeEach(() => {
  [now, away, asked] = [0, false, 0];
  later = [];
  key = {
    key_id: 'key_1',
    account_id: 'acct_1',
    name: 'n',
    hash: 'h',
    scopes: [],
    issued_at: '',
    issued_by: 'operator',
    expires_at: null,
    replaced_by: null,
    revoked_at: null,
    revoked_by: null,
    revision: 1,
  };
  agent = {
    agent_id: 'agent_1',
    account_id: 'acct_1',
    name: 'n',
    instruction: 'i',
    model: 'm',
    tool: null,
    compaction: false,
    component: 'Chat',
    parameters: null,
    created_at: '',
    updated_at: '',
    deleted: false,
    erased: false,
    position: '',
    revision: 0,
  };
  rows = cacheRowsForOutage(
    {
      findApiKey: () => answer(() => key),
      findApiKeyByHash: () => answer(() => key),
      findAgent: () => answer(() => agent),
    },
    log,
    () => now,
  );
});

test('nothing is remembered any more of keys and agents, names among it, once it is to be forgotten', async () => {
  const looks = [
    () => rows.findApiKey('key_1'),
    () => rows.findApiKeyByHash('h'),
    () => rows.findAgent('agent_1'),
  ];
  for (const look of looks) await look();
  rows.forget!();
  away = true;
  for (const look of looks)
    await expect(look()).rejects.toMatchObject({ code: 'store_unavailable' });
});

describe('while the read models answer', () => {
  test('a key is not asked for again within half a second, and a revocation is seen after it', async () => {
    await rows.findApiKey('key_1');
    key = { ...key!, revoked_at: 'now' };
    now = 499;
    expect((await rows.findApiKey('key_1'))?.revoked_at).toBeNull();
    expect(asked).toBe(1);
    now = 500;
    expect((await rows.findApiKey('key_1'))?.revoked_at).toBe('now');
  });

  test('a key that is found by its hash is remembered and forgotten in the same way', async () => {
    await rows.findApiKeyByHash('hash');
    key = { ...key!, revoked_at: 'now' };
    now = 499;
    expect((await rows.findApiKeyByHash('hash'))?.revoked_at).toBeNull();
    now = 500;
    expect((await rows.findApiKeyByHash('hash'))?.revoked_at).toBe('now');
  });

  test('an agent is asked for each time, so that every acknowledged change is seen', async () => {
    await rows.findAgent('agent_1');
    agent = { ...agent!, instruction: 'changed', revision: 1 };
    expect((await rows.findAgent('agent_1'))?.instruction).toBe('changed');
    agent = undefined;
    expect(await rows.findAgent('agent_1')).toBeUndefined();
  });

  test('what is not there is looked for again at once', async () => {
    const issued = key;
    key = undefined;
    expect(await rows.findApiKey('key_1')).toBeUndefined();
    key = issued;
    expect(await rows.findApiKey('key_1')).toBe(issued);
  });
});

describe('while the read models are away', () => {
  test('the agents that were read last serve, as far as their texts have room', async () => {
    agent = { ...agent!, instruction: 'i'.repeat(0.6 * LIMITS.cache.rowChars) };
    await rows.findAgent('agent_1');
    await rows.findAgent('agent_2');
    away = true;
    await expect(rows.findAgent('agent_1')).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(await rows.findAgent('agent_2')).toBe(agent);
  });

  test('keys and agents that were read before serve for two minutes, and no longer', async () => {
    await rows.findApiKey('key_1');
    await rows.findAgent('agent_1');
    away = true;
    now = 119_999;
    expect([await rows.findApiKey('key_1'), await rows.findAgent('agent_1')]).toEqual([key, agent]);
    now = 120_000;
    await expect(rows.findApiKey('key_1')).rejects.toMatchObject({ code: 'store_unavailable' });
    await expect(rows.findAgent('agent_1')).rejects.toMatchObject({ code: 'store_unavailable' });
  });

  test('a key is refused that was revoked meanwhile, and others of its account are not', async () => {
    await rows.findApiKey('key_1');
    away = true;
    now = 500;
    later = [event('account-acct_1', 1, { key_id: 'key_1' })];
    later.push(event('account-acct_1', 2, { key_id: 'key_2' }));
    expect(await rows.findApiKey('key_1')).toBe(key);
    later.push(event('account-acct_1', 3, { key_id: 'key_1' }));
    await expect(rows.findApiKey('key_1')).rejects.toMatchObject({ code: 'store_unavailable' });
  });

  test('a key is refused whose account has more behind it than is looked through', async () => {
    await rows.findApiKey('key_1');
    away = true;
    now = 500;
    later = Array.from({ length: 1_000 }, (_, i) =>
      event('account-acct_1', i + 2, { key_id: 'k' }),
    );
    await expect(rows.findApiKey('key_1')).rejects.toMatchObject({ code: 'store_unavailable' });
  });

  test('an agent is not run as it was before a change, nor after it was deleted', async () => {
    await rows.findAgent('agent_1');
    away = true;
    later = [event('agent-agent_1', 0, {})];
    expect(await rows.findAgent('agent_1')).toBe(agent);
    later.push(event('agent-agent_1', 1, {}));
    await expect(rows.findAgent('agent_1')).rejects.toMatchObject({ code: 'store_unavailable' });
  });

  test('of an erased agent nothing is kept, and of others everything', async () => {
    await rows.findAgent('agent_1');
    await rows.findApiKey('key_1');
    asked = 0;
    rows.forget!('agent-agent_2');
    rows.forget!('agent-agent_1');
    expect(await rows.findApiKey('key_1')).toBe(key);
    expect(asked).toBe(0);
    away = true;
    await expect(rows.findAgent('agent_1')).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(await rows.findApiKey('key_1')).toBe(key);
    rows.forget!('account-acct_1');
    await expect(rows.findApiKey('key_1')).rejects.toMatchObject({ code: 'store_unavailable' });
  });

  test('what was never read, and what was gone when it was read last, is not known', async () => {
    await rows.findAgent('agent_1');
    agent = undefined;
    await rows.findAgent('agent_1');
    away = true;
    await expect(rows.findAgent('agent_1')).rejects.toMatchObject({ code: 'store_unavailable' });
    await expect(rows.findApiKey('key_1')).rejects.toMatchObject({ code: 'store_unavailable' });
  });

  test('read models that do not answer at all are away as well', async () => {
    let answers = true;
    const silent = cacheRowsForOutage(
      {
        findApiKey: () => Promise.resolve(key),
        findApiKeyByHash: () => Promise.resolve(key),
        findAgent: () => (answers ? Promise.resolve(agent) : new Promise(() => undefined)),
      },
      log,
      () => now,
    );
    await silent.findAgent('agent_1');
    answers = false;
    expect(await silent.findAgent('agent_1')).toBe(agent);
  });

  test('a defect is not taken for it', async () => {
    await rows.findAgent('agent_1');
    const broken = cacheRowsForOutage(
      {
        findApiKey: () => Promise.reject(new Error('defect')),
        findApiKeyByHash: () => Promise.reject(new Error('defect')),
        findAgent: () => Promise.reject(new Error('defect')),
      },
      log,
      () => now,
    );
    await expect(broken.findAgent('agent_1')).rejects.toThrow('defect');
  });
});
