import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { beginReplaySession } from '../../../../../shared/replays/turns/startReplaySession.ts';
import type { HandleContext } from '../../../../../shared/commandHandling/handle.ts';
import { LIMITS } from '../../../../../shared/limits.ts';
import { sessionErased, sessionStarted } from '../../../../support/builders/events.ts';
import { handleContext, writeStream } from '../../../../support/stores/handleContext.ts';
import {
  eventStoreFixture,
  type SqliteEventStoreFixture,
} from '../../../../support/stores/sqlite/sqliteEventStore.ts';

const ACTOR = { account_id: 'acct_1', key_id: 'key_1', request_id: 'request_1' };
const { depth } = LIMITS.replays;

let fixture: SqliteEventStoreFixture;
let context: HandleContext;
beforeEach(async () => {
  fixture = await eventStoreFixture();
  context = handleContext(fixture.store(), 0);
  await writeStream(context, ACTOR, 'session-recorded', [sessionStarted()]);
});
afterEach(() => fixture.dispose());

const begin = (id: string, session_id: string, role: 'replay' | 'judge' = 'replay') =>
  beginReplaySession(context, ACTOR, id, {
    agent_id: 'agent_1',
    replay: { replay_id: 'replay_1', session_id, role },
  });

const exists = async (id: string): Promise<boolean> => {
  const page = { direction: 'forwards', limit: 1 } as const;
  return (await context.store.readStream(`session-${id}`, page)).length > 0;
};

/** Replays the recorded session, then its replay, and so on. Returns the id of the last session. */
async function replayInTurn(replays: number): Promise<string> {
  let last = 'recorded';
  for (let nth = 1; nth <= replays; nth += 1) {
    await begin(`replay${nth}`, last);
    last = `replay${nth}`;
  }
  return last;
}

test('replays of replays are limited, and judged up to that limit', async () => {
  const last = await replayInTurn(depth);
  await begin('judge', last, 'judge');
  await expect(begin('beyond', last)).rejects.toMatchObject({ code: 'invalid_request' });
  expect([await exists('judge'), await exists('beyond')]).toEqual([true, false]);
  // The attempt that is repeated after a crash finds its session.
  await begin(last, `replay${depth - 1}`);
});

test('a replay ends when any session that it replays is erased', async () => {
  await writeStream(context, ACTOR, 'session-erased', [sessionStarted(), sessionErased({})]);
  await expect(begin('replay1', 'erased')).rejects.toMatchObject({ code: 'session_erased' });
  await expect(begin('replay2', 'replay1')).rejects.toMatchObject({ code: 'session_erased' });
});
