import { describe, expect, test } from '@jest/globals';
import { LIMITS } from '../../../../shared/limits.ts';
import { replay, type ReplayCommand } from '../../../../shared/replays/decider.ts';
import {
  replay as stateAfter,
  specification,
} from '../../../support/builders/deciderSpecification.ts';
import {
  replayEnded,
  replayErased,
  replaySessionEnded,
  replaySessionStarted,
  replayStarted,
  replayTurnsCompared,
  turnComparison,
} from '../../../support/builders/events.ts';

const given = specification(replay);
const started = replayStarted();
const begin = {
  type: 'start_session' as const,
  session_id: 'session_1',
  replay_session_id: 'session_2',
} satisfies ReplayCommand;
const compared = (...turns: number[]): ReplayCommand => ({
  type: 'record_comparison',
  session_id: 'session_1',
  turns: turns.map((turn) => turnComparison(turn)),
});
const end: ReplayCommand = { type: 'end_replay', status: 'completed' };

describe('a replay', () => {
  test('is started once', () => {
    const { data } = started as { data: Parameters<typeof replayStarted>[0] };
    const start = { type: 'start_replay', replay: data } as ReplayCommand;
    given().when(start).then(started);
    given(started).when(start).thenRejected('replay_exists');
    given(started, replayErased()).when(start).thenRejected('replay_exists');
  });

  test('names the session of each recorded one before it begins, and keeps to the name', () => {
    given(started).when(begin).then(replaySessionStarted());
    given(started, replaySessionStarted())
      .when({ ...begin, replay_session_id: 'session_3' })
      .then();
    given(started)
      .when({ ...begin, session_id: 'session_9' })
      .thenRejected('replay_missing');
  });

  test('compares each turn once, whoever says it again', () => {
    const one = replayTurnsCompared([turnComparison(1)]);
    given(started, replaySessionStarted()).when(compared(1)).then(one);
    given(started, replaySessionStarted(), one)
      .when(compared(1, 2))
      .then(replayTurnsCompared([turnComparison(2)]));
    given(started, replaySessionStarted(), one).when(compared(1)).then();
  });

  test('ends a session once, with what is left to compare', () => {
    const last = { ...compared(1), end: { status: 'completed' } } as ReplayCommand;
    given(started).when(last).then(replayTurnsCompared(), replaySessionEnded());
    given(started, replayTurnsCompared(), replaySessionEnded()).when(last).then();
  });

  test('ends once, whether it was cancelled or came to its end first, and then nothing follows', () => {
    given(started).when(end).then(replayEnded());
    const cancelled = replayEnded({ status: 'cancelled' });
    given(started, cancelled).when(end).then();
    given(started, cancelled).when(begin).thenRejected('replay_ended');
    given(started, cancelled).when(compared(1)).thenRejected('replay_ended');
  });

  test('that was erased takes nothing more, and is erased once', () => {
    const { data } = replayErased() as { data: { reason: 'account'; key_ids: string[] } };
    const erase: ReplayCommand = { type: 'erase_replay', ...data };
    given(started, replayEnded()).when(erase).then(replayErased());
    given(started, replayErased()).when(erase).then();
    given(started, replayErased()).when(compared(1)).thenRejected('replay_missing');
    given(started, replayErased()).when(end).thenRejected('replay_missing');
    given().when(erase).thenRejected('replay_missing');
  });

  test('sums the tokens of its turns up', () => {
    const state = stateAfter(replay, [
      started,
      replayTurnsCompared([turnComparison(1), turnComparison(2)]),
    ]);
    expect(state).toMatchObject({ status: 'running', tokens: 24 });
  });

  test('of as many sessions as there may be takes an event as fast as one of a few', () => {
    const sessions = Array.from({ length: LIMITS.replays.sessions }, (_, at) => ({
      session_id: `session_${at}`,
      revision: 2,
      turns: 1,
    }));
    const events = sessions.flatMap(({ session_id }) => [
      replaySessionStarted(session_id),
      replaySessionEnded(session_id),
    ]);
    const before = process.cpuUsage();
    const state = stateAfter(replay, [replayStarted({ sessions }), ...events]);
    // Some milliseconds; with a copy of all sessions for each event it is over a second.
    expect(process.cpuUsage(before).user / 1_000).toBeLessThan(500);
    if (!('sessions' in state)) throw new Error('It runs.');
    expect(state.sessions.all()).toEqual(
      sessions.map((session) => ({
        ...session,
        replay_session_id: 'session_2',
        compared: 0,
        ended: true,
      })),
    );
    expect(state.sessions.get('session_1999')).toMatchObject({ ended: true });
    expect(state.sessions.get('session_2000')).toBeUndefined();
  });
});
