import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { sessionTarget } from '../../../shared/commands/loadSession.ts';
import { session } from '../../../shared/domain/session/decider.ts';
import type { SessionEvent } from '../../../shared/domain/session/events.ts';
import { appendEvents, NO_STREAM } from '../../../shared/eventlog/append.ts';
import { createDamagedStreams } from '../../../shared/eventlog/damagedStreams.ts';
import { replay } from '../../support/events/deciderSpecification.ts';
import {
  sessionStarted,
  toolCalled,
  turnCompleted,
  turnFailed,
  turnInterrupted,
  turnStarted,
} from '../../support/events/events.ts';
import { ofNoTurn } from '../../support/events/randomHistory.ts';
import { sqliteEventStoreFixture } from '../../support/sqlite/sqliteEventStore.ts';

let fixture: Awaited<ReturnType<typeof sqliteEventStoreFixture>>;
beforeEach(async () => {
  fixture = await sqliteEventStoreFixture();
});
afterEach(() => fixture.dispose());

const ENDS = [turnCompleted, turnFailed, turnInterrupted];

/** More turns than one page holds. */
const turns = Array.from({ length: 40 }, (_, index): SessionEvent[] => [
  turnStarted(index + 1),
  toolCalled(index + 1),
  ENDS[index % ENDS.length]!(index + 1),
]).flat();

/** Only the beginning and the end of a long session are read: what is told in between can be no part of its state. */
test.each([
  ['between its turns', [...turns]],
  ['in a turn', turns.slice(0, -1)],
])('a long session %s has the state that all of its events come to', async (_where, later) => {
  const events = [sessionStarted(), ...(ofNoTurn as SessionEvent[]), ...later];
  const { stream, load } = sessionTarget('session_1');
  await appendEvents(
    fixture.store(),
    { stream, head: NO_STREAM },
    events.map((event) => ({ id: randomUUID(), ...event })),
    {
      account_id: 'acct_1',
      key_id: 'key_1',
      request_id: 'request_1',
      causation_id: 'request_1',
      recorded_at: '2026-11-21T09:00:00.000Z',
    },
  );
  const damaged = createDamagedStreams(() => undefined);
  const { state } = await load({ store: fixture.store(), damaged });
  expect(state).toEqual(replay(session, events));
});
