import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { handle, type HandleContext } from '../../../../shared/commandHandling/handle.ts';
import { sessionTarget } from '../../../../shared/sessions/history/loadSession.ts';
import {
  newStreamTarget,
  wholeStreamTarget,
} from '../../../../shared/commandHandling/targetStream.ts';
import { account } from '../../../../shared/accounts/decider.ts';
import { agent } from '../../../../shared/agents/decider.ts';
import { type SessionCommand } from '../../../../shared/sessions/decider.ts';
import { appendEvents, headOf, NO_STREAM } from '../../../../shared/eventlog/append.ts';
import { decodeEvent } from '../../../../shared/eventlog/codec.ts';
import { createDamagedStreams } from '../../../../shared/eventlog/reading/damagedStreams.ts';
import { accountStream, agentStream, sessionStream } from '../../../../shared/eventlog/streams.ts';
import type { StoredEvent } from '../../../../shared/ports/eventStore.ts';
import {
  AGENT_ID,
  agentData,
  keyData,
  sessionStarted,
  turnCompleted,
  turnStartData,
  turnStarted,
} from '../../../support/builders/events.ts';
import {
  eventStoreFixture,
  type SqliteEventStoreFixture,
} from '../../../support/stores/sqlite/sqliteEventStore.ts';

const actor = { account_id: 'acct_1', key_id: 'key_1', request_id: 'request_1' };
const ACCOUNT = accountStream(actor.account_id);
const NOW = Date.UTC(2026, 10, 22);
const open = { type: 'open_account', name: 'default' } as const;

let fixture: SqliteEventStoreFixture;
let context: HandleContext;
let reads: number;
/** What others append right before the next append. */
let others: { type: string; data: object }[];

beforeEach(async () => {
  fixture = await eventStoreFixture();
  reads = 0;
  others = [];
  const store = fixture.store();
  context = {
    store: {
      ...store,
      async readStream(...given) {
        reads += 1;
        return store.readStream(...given);
      },
      async append(stream, ...given) {
        await appendByOthers(stream, ...others.splice(0));
        return store.append(stream, ...given);
      },
    },
    damaged: createDamagedStreams(() => undefined),
    clock: { now: () => NOW },
    ids: { uuid: randomUUID, typeId: (prefix) => prefix },
  };
});
afterEach(() => fixture.dispose());

const readAll = (stream: string): Promise<StoredEvent[]> =>
  fixture.store().readStream(stream, { direction: 'forwards', limit: 1_000 });
const typesOf = async (stream: string): Promise<string[]> =>
  (await readAll(stream)).map(({ type }) => type);

async function appendByOthers(
  stream: string,
  ...events: { type: string; data: object }[]
): Promise<void> {
  if (events.length === 0) return;
  const last = (await readAll(stream)).at(-1);
  await appendEvents(
    fixture.store(),
    { stream, head: last ? headOf(decodeEvent(last)) : NO_STREAM },
    {
      events: events.map((event) => ({ id: randomUUID(), ...event })),
      authorship: { ...actor, causation_id: 'r', recorded_at: '2026-11-21T09:00:00.000Z' },
    },
  );
}

const onAccount = wholeStreamTarget(ACCOUNT, account);
const opened = { type: 'account.opened.v1', data: { name: 'by another' } };
const key = keyData('key_1');

describe('a command', () => {
  test('is decided and appended, with who sent it, when, and in which request', async () => {
    const appended = await handle(context, actor, onAccount, open);
    const [stored] = await readAll(ACCOUNT);
    const { metadata } = decodeEvent(stored!);
    expect(metadata).toMatchObject({ ...actor, causation_id: actor.request_id });
    expect(appended).toMatchObject({
      head: { revision: 0, hash: metadata.hash },
      position: stored!.position,
      lastEventId: stored!.id,
      recorded_at: new Date(NOW).toISOString(),
    });
  });

  test('is decided again on what another writer has appended in between', async () => {
    await handle(context, actor, onAccount, open);
    others = [{ type: 'account.limits_set.v1', data: { runs: 1 } }];
    await handle(context, actor, onAccount, { type: 'issue_key', key });
    expect(await typesOf(ACCOUNT)).toEqual([
      'account.opened.v1',
      'account.limits_set.v1',
      'account.key_issued.v1',
    ]);
  });

  test('is refused with the code of its rejection, also where another writer is why', async () => {
    others = [opened];
    const rejected = { name: 'Rejection', code: 'account_exists' };
    await expect(handle(context, actor, onAccount, open)).rejects.toMatchObject(rejected);
    expect(await typesOf(ACCOUNT)).toEqual(['account.opened.v1']);
  });

  test('that decides nothing writes nothing', async () => {
    await handle(context, actor, onAccount, open);
    await handle(context, actor, onAccount, { type: 'issue_key', key });
    const revoke = { type: 'revoke_key', key_id: key.key_id } as const;
    expect(await handle(context, actor, onAccount, revoke)).toBeDefined();
    expect(await handle(context, actor, onAccount, revoke)).toBeUndefined();
    expect(await typesOf(ACCOUNT)).toHaveLength(3);
  });

  test('on a stream whose id was just made reads nothing, unless somebody was there first', async () => {
    const onNew = newStreamTarget(ACCOUNT, account);
    await handle(context, actor, onNew, open);
    expect(reads).toBe(0);
    await expect(handle(context, actor, onNew, open)).rejects.toMatchObject({
      code: 'account_exists',
    });
  });

  test('of an erased account that begins a stream with texts is refused, and nothing is appended', async () => {
    await handle(context, actor, onAccount, open);
    await handle(context, actor, onAccount, { type: 'erase_account', key_ids: [] });
    // As evictErased does in every process.
    context.store.keys.evict(ACCOUNT, []);
    const onNew = newStreamTarget(agentStream(AGENT_ID), agent);
    const command = { type: 'create_agent', configuration: agentData() } as const;
    await expect(handle(context, actor, onNew, command)).rejects.toMatchObject({
      code: 'unauthorized',
    });
    expect(await typesOf(onNew.stream)).toEqual([]);
  });

  test('on a stream that is not whole is refused, and the stream is noted', async () => {
    await appendByOthers(ACCOUNT, { type: 'account.key_issued.v1', data: key });
    await expect(handle(context, actor, onAccount, open)).rejects.toMatchObject({
      code: 'stream_damaged',
    });
    expect(context.damaged.has(ACCOUNT)).toBe(true);
  });
});

describe('a command on a session', () => {
  const SESSION = 'session_1';
  const STREAM = sessionStream(SESSION);
  const betweenTurns: SessionCommand = {
    type: 'start_turn',
    agent_id: AGENT_ID,
    new_session: false,
    turn: turnStartData,
  };
  const send = () => handle(context, actor, sessionTarget(SESSION), betweenTurns);

  test('is appended after the last turn, however long the session is', async () => {
    const turns = Array.from({ length: 100 }, (_, index) => index + 1);
    const events = turns.flatMap((turn) => [turnStarted(turn), turnCompleted(turn)]);
    await appendByOthers(STREAM, sessionStarted(), ...events);
    expect(await send()).toMatchObject({ head: { revision: 201 } });
    expect(reads).toBeLessThan(4);
  });

  test('that is not of the run is refused while a turn is open, and nothing is appended', async () => {
    await appendByOthers(STREAM, sessionStarted(), turnStarted(1));
    await expect(send()).rejects.toMatchObject({ name: 'Rejection', code: 'turn_open' });
    expect(await readAll(STREAM)).toHaveLength(2);
  });

  test('that a run comes before is refused as well', async () => {
    await appendByOthers(STREAM, sessionStarted(), turnStarted(1), turnCompleted(1));
    others = [turnStarted(2)];
    await expect(send()).rejects.toMatchObject({ name: 'Rejection', code: 'turn_open' });
    expect(await readAll(STREAM)).toHaveLength(4);
  });
});
