import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { typeIds } from '../../../../../infra/ids/typeIds.ts';
import { countUncompared } from '../../../../../services/followers/replays/budget.ts';
import { authorOf, prepareEvents } from '../../../../../shared/commandHandling/prepareEvents.ts';
import { judgeSessionId } from '../../../../../shared/replays/comparison/judgeSession.ts';
import type { Budget } from '../../../../../shared/replays/comparison/turnPair.ts';
import type { SessionEvent, TurnStartedData } from '../../../../../shared/sessions/events.ts';
import { NO_STREAM, appendEvents } from '../../../../../shared/eventlog/append.ts';
import { createDamagedStreams } from '../../../../../shared/eventlog/reading/damagedStreams.ts';
import {
  AGENT_ID,
  sessionStarted,
  turnCompleted,
  turnFailed,
  turnStarted,
} from '../../../../support/builders/events.ts';
import {
  eventStoreFixture,
  type SqliteEventStoreFixture,
} from '../../../../support/stores/sqlite/sqliteEventStore.ts';

const recordedAt = '2026-11-23T09:00:00.000Z';
const tokens = (total: number) => ({ tokens: { prompt: total, completion: 0, total } });
const replay = (turn: number, of: number) => turnStarted(turn, { replay_of: of });

let fixture: SqliteEventStoreFixture;
beforeEach(async () => void (fixture = await eventStoreFixture()));
afterEach(() => fixture.dispose());

async function counted() {
  const context = {
    store: fixture.store(),
    damaged: createDamagedStreams(() => undefined),
    clock: { now: () => Date.parse(recordedAt) },
    ids: typeIds,
    logger: { debug: () => undefined },
  };
  const author = authorOf({ account_id: 'acct_1', key_id: 'key_1', request_id: 'request_1' });
  const write = async (id: string, events: readonly SessionEvent[]): Promise<void> => {
    const facts = await prepareEvents(context, author, NO_STREAM, [
      sessionStarted(AGENT_ID),
      ...events,
    ]);
    await appendEvents(context.store, { stream: `session-${id}`, head: NO_STREAM }, facts);
  };
  await write('session_2', [
    replay(1, 1),
    turnCompleted(1, tokens(1)),
    replay(2, 2),
    turnFailed(2, tokens(10)),
    replay(3, 2),
    turnCompleted(3, tokens(100)),
    replay(4, 3),
  ]);
  const { data: started } = replay(3, 2) as { data: TurnStartedData };
  const replayed = { session_id: 'session_2', started, recorded_at: recordedAt };
  const judge = judgeSessionId(typeIds, replayed, 1);
  await write(judge, [
    replay(1, 2),
    turnFailed(1, tokens(1_000)),
    replay(2, 2),
    turnCompleted(2, tokens(10_000)),
  ]);

  const took = new Map<string, object>();
  const budget: Budget = {
    took: ({ in: at, ...taken }) => void took.set(at, taken),
    uncompared: () => 0,
    isSpent: () => false,
  };
  const checks = JSON.stringify([{ equals: 'x' }, { judge: { model: 'm', criteria: 'c' } }]);
  const settings = {
    tools: 'recorded',
    missing_tools: 'stop',
    concurrency: 1,
    budget_tokens: 1,
    checks,
  } as const;
  const running = { replay_id: 'replay_1', account_id: 'acct_1', settings };
  const session = { session_id: 'session_1', revision: 9, turns: 3, compared: 1, ended: false };
  const at = { ...session, replay_session_id: 'session_2' };
  await countUncompared(context, { replay: running, budget }, at);
  return { took, judge };
}

test('what a process before took for turns that are not compared is counted, with tries and judges', async () => {
  const { took, judge } = await counted();
  expect([...took]).toEqual([
    ['session_2', { session_id: 'session_1', turn: 2, tokens: 110 }],
    [judge, { session_id: 'session_1', turn: 2, tokens: 11_000 }],
  ]);
});
