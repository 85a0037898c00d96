import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { openAccount, setHold } from '../../../../../shared/accounts/commands.ts';
import type { CommandContext } from '../../../../../shared/commandHandling/context.ts';
import { eraseStream } from '../../../../../shared/erasure/eraseStream.ts';
import type { JudgedErasure } from '../../../../../shared/erasure/restored/judgeErasure.ts';
import { reconcileErasures } from '../../../../../shared/erasure/restored/reconcileErasures.ts';
import type { DomainEvent } from '../../../../../shared/eventlog/eventTypes.ts';
import {
  replayStarted,
  sessionStarted,
  turnCompleted,
  turnStarted,
} from '../../../../support/builders/events.ts';
import { handleContext, writeStream } from '../../../../support/stores/handleContext.ts';
import {
  sqliteEventStoreFixture,
  type SqliteEventStoreFixture,
} from '../../../../support/stores/sqlite/sqliteEventStore.ts';

const actor = { account_id: 'acct_1', key_id: 'key_1', request_id: 'request_1' };
const SESSION = 'session-session_1';
const REPLAY = 'replay-replay_1';
const never = new AbortController().signal;

let fixture: SqliteEventStoreFixture;
let context: CommandContext;
let backup: Record<string, any>[];
let keys: Record<string, string>;

const inFile = <Result>(name: string, work: (database: DatabaseSync) => Result): Result => {
  const database = new DatabaseSync(join(fixture.folder, name));
  try {
    return work(database);
  } finally {
    database.close();
  }
};

/** Opens the stores as another process, in which nothing is cached. */
async function reopen(): Promise<void> {
  await fixture.reopen();
  context = { ...context, store: fixture.store() };
}

async function restoreKeys(): Promise<void> {
  inFile('keys.db', (database) => {
    const restore = database.prepare(
      'UPDATE text_keys SET master_key_id = ?, wrapped = ? WHERE key_id = ?',
    );
    for (const { key_id, master_key_id, wrapped } of backup)
      restore.run(master_key_id, wrapped, key_id);
  });
  await reopen();
}

const write = async (stream: string, ...events: DomainEvent[]): Promise<string> =>
  (await writeStream(context, actor, stream, events)).key!.id;

beforeEach(async () => {
  fixture = await sqliteEventStoreFixture();
  context = {
    ...handleContext(fixture.store(), Date.parse('2026-11-23T09:00:00.000Z')),
    readModels: { untilShown: async () => true },
  } as unknown as CommandContext;
  await openAccount(context, actor, 'somebody');
  keys = {
    [SESSION]: await write(SESSION, sessionStarted(), turnStarted(1), turnCompleted(1)),
    [REPLAY]: await write(REPLAY, replayStarted({ instruction: 'a text' })),
  };
  backup = inFile('keys.db', (database) => database.prepare('SELECT * FROM text_keys').all());
  for (const stream of [SESSION, REPLAY])
    await eraseStream(context, stream, { reason: 'request' }, actor);
});
afterEach(() => fixture.dispose());

async function reconcile(apply: boolean, proofFault?: string): Promise<JudgedErasure[]> {
  const judged: JudgedErasure[] = [];
  const complete = await reconcileErasures(
    {
      log: context.store,
      context: { ...context, findProofFault: async () => proofFault },
      apply,
      after: undefined,
      signal: never,
      onProgress: () => undefined,
    },
    (erasure) => judged.push(erasure),
  );
  expect(complete).toBe(true);
  return judged;
}
const stateOf = async (stream: string): Promise<unknown> => {
  const state = (await context.store.keys.examine([keys[stream]!])).get(keys[stream]!);
  return typeof state === 'object' ? 'exists' : state;
};
const kept = (reason: string) =>
  [SESSION, REPLAY].map((stream) => ({
    stream,
    destroy: [],
    keep: [{ key_id: keys[stream], reason: expect.stringContaining(reason) }],
  }));

describe('the keys of erased streams', () => {
  test('that stay destroyed leave nothing to do', async () => {
    await reopen();
    expect(await reconcile(true)).toEqual([]);
  });

  test('that were restored are listed, and destroyed only when that is asked for, those of replays too', async () => {
    await restoreKeys();
    const listed = [SESSION, REPLAY].map((stream) => ({
      stream,
      destroy: [keys[stream]],
      keep: [],
    }));
    expect(await reconcile(false)).toMatchObject(listed);
    expect(await stateOf(SESSION)).toBe('exists');
    expect(await reconcile(true)).toMatchObject(listed);
    expect([await stateOf(SESSION), await stateOf(REPLAY)]).toEqual(['destroyed', 'destroyed']);
    expect(await reconcile(true)).toEqual([]);
  });

  test('that the key store has lost are recorded as destroyed', async () => {
    inFile('keys.db', (database) => database.exec('DELETE FROM text_keys'));
    await reopen();
    expect(await stateOf(SESSION)).toBe('lost');
    await reconcile(true);
    expect(await stateOf(SESSION)).toBe('destroyed');
  });

  test('are kept while the account is on legal hold', async () => {
    await setHold(context, actor, { held: true });
    await restoreKeys();
    expect(await reconcile(true)).toMatchObject(kept('acct_1 is on legal hold'));
    expect(await stateOf(SESSION)).toBe('exists');
  });

  test('are kept where the transparency log does not prove the erasure', async () => {
    await restoreKeys();
    expect(await reconcile(true, 'it has no leaf')).toMatchObject(kept('it has no leaf'));
  });

  test('are kept where the chain of the stream does not lead to the erasure', async () => {
    await restoreKeys();
    inFile('events.db', (database) =>
      database.exec(
        `UPDATE events SET metadata = replace(metadata, 'acct_1', 'acct_2') WHERE revision = 0 AND stream IN ('${SESSION}', '${REPLAY}')`,
      ),
    );
    expect(await reconcile(true)).toMatchObject(kept('does not fit'));
  });

  test('are left to the service while an erasure is not finished', async () => {
    await restoreKeys();
    for (const stream of [SESSION, REPLAY]) await context.store.keys.beginErasure(stream, '{}');
    expect(await reconcile(true)).toMatchObject(kept('is not finished'));
    expect(await context.store.keys.listErasures(9)).toHaveLength(2);
  });
});
