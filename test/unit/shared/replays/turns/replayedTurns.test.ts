import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { readReplayedTurns } from '../../../../../shared/replays/turns/replayedTurns.ts';
import type { SessionEvent, TurnInterruptedData } from '../../../../../shared/sessions/events.ts';
import {
  sessionStarted,
  turnCompleted,
  turnFailed,
  turnStarted,
} from '../../../../support/builders/events.ts';
import { handleContext, writeStream } from '../../../../support/stores/handleContext.ts';
import {
  eventStoreFixture,
  type SqliteEventStoreFixture,
} from '../../../../support/stores/sqlite/sqliteEventStore.ts';

const ACTOR = { account_id: 'acct_1', key_id: 'key_1', request_id: 'request_1' };

let fixture: SqliteEventStoreFixture;
beforeEach(async () => void (fixture = await eventStoreFixture()));
afterEach(() => fixture.dispose());

test('counts the attempts of a recorded turn that a crash left open, not those that were stopped', async () => {
  const context = handleContext(fixture.store(), 0);
  const attempt = (turn: number, replay_of: number, end: SessionEvent): SessionEvent[] => [
    turnStarted(turn, { replay_of }),
    end,
  ];
  const interrupted = (data: TurnInterruptedData): SessionEvent => ({
    type: 'session.turn_interrupted.v1',
    data,
  });
  await writeStream(context, ACTOR, 'session-1', [
    sessionStarted(),
    ...attempt(1, 1, interrupted({ turn: 1, reason: 'crash' })),
    ...attempt(2, 1, turnCompleted(2)),
    ...attempt(3, 2, interrupted({ turn: 3, reason: 'crash' })),
    ...attempt(4, 2, interrupted({ turn: 4, reason: 'crash', cause: 'shutdown' })),
    ...attempt(5, 2, interrupted({ turn: 5, reason: 'cancelled' })),
    ...attempt(6, 2, turnFailed(6)),
    // A process that was gone for so long that it was not listed any more.
    ...attempt(7, 2, interrupted({ turn: 7, reason: 'deadline' })),
  ]);
  const turns = readReplayedTurns(context, { sessionId: '1', onTry: () => undefined });
  const crashes: number[] = [];
  for (const recorded of [1, 2, 3]) {
    await turns.lastTry(recorded);
    crashes.push(turns.crashes(recorded));
  }
  expect(crashes).toEqual([1, 2, 0]);
});
