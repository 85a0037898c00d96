import { describe, test } from '@jest/globals';
import { session, type SessionCommand } from '../../../../shared/sessions/decider.ts';
import { specification } from '../../../support/builders/deciderSpecification.ts';
import type { SessionCompactedData } from '../../../../shared/sessions/events.ts';
import {
  AGENT_ID,
  sessionCompacted,
  sessionDescribed,
  sessionErased,
  sessionStarted,
  toolCallData,
  toolCalled,
  turnCompleted,
  turnCompletedData,
  turnFailed,
  turnFailedData,
  turnInterrupted,
  turnStartData,
  turnStarted,
} from '../../../support/builders/events.ts';

const given = specification(session);
const startTurn = (new_session: boolean, agent_id = AGENT_ID): SessionCommand => ({
  type: 'start_turn',
  agent_id,
  new_session,
  turn: turnStartData,
});
const turn1 = { turn: 1, owner: turnStartData.owner };
const running = [sessionStarted(), turnStarted(1)] as const;

describe('starting a turn', () => {
  test('starts a new session with its first turn', () =>
    given().when(startTurn(true)).then(sessionStarted(), turnStarted(1, turnStartData)));
  test('is refused in a session that does not exist, and nothing is decided', () =>
    given().when(startTurn(false)).thenRejected('session_missing'));
  test("is refused in another agent's session before it is said to be busy", () =>
    given(...running)
      .when(startTurn(false, 'agent_2'))
      .thenRejected('session_of_another_agent'));
  test('is refused while a turn is open', () =>
    given(...running)
      .when(startTurn(false))
      .thenRejected('turn_open'));
  test.each([
    ['answered', turnCompleted(1)],
    ['failed', turnFailed(1)],
    ['interrupted', turnInterrupted(1)],
  ])('numbers on after a turn that was %s', (_how, end) =>
    given(...running, end)
      .when(startTurn(false))
      .then(turnStarted(2, turnStartData)),
  );
});

describe('the session of a replay', () => {
  const of = { replay_id: 'replay_1', session_id: 'session_0', role: 'replay' } as const;
  const begun = sessionStarted(AGENT_ID, { replay: of });
  const startOf = (after_turn: number, replay_id = 'replay_1'): SessionCommand => ({
    ...(startTurn(false) as Extract<SessionCommand, { type: 'start_turn' }>),
    replay: { replay_id, after_turn },
  });
  test('is begun before its first turn, once', () => {
    const begin: SessionCommand = { type: 'begin_session', agent_id: AGENT_ID, replay: of };
    given().when(begin).then(begun);
    given(begun).when(begin).thenRejected('session_exists');
  });
  test('takes turns of its replay, each after the last one that was seen', () => {
    given(begun).when(startOf(0)).then(turnStarted(1, turnStartData));
    given(begun, turnStarted(1), turnCompleted(1))
      .when(startOf(1))
      .then(turnStarted(2, turnStartData));
    given(begun, turnStarted(1), turnCompleted(1)).when(startOf(0)).thenRejected('session_moved');
    given(begun, turnStarted(1)).when(startOf(1)).thenRejected('turn_open');
  });
  test("takes nobody else's, whatever happened in it", () => {
    given(begun).when(startTurn(false)).thenRejected('session_of_replay');
    given(begun).when(startOf(0, 'replay_2')).thenRejected('session_of_replay');
    given(begun, turnStarted(1), turnFailed(1))
      .when(startTurn(false))
      .thenRejected('session_of_replay');
    given(sessionStarted()).when(startOf(0)).thenRejected('session_of_replay');
  });
});

describe('an open turn', () => {
  test('records its tool calls', () =>
    given(...running)
      .when({ type: 'record_tool_call', run: turn1, call: toolCallData(1, { call_id: 'a' }) })
      .then(toolCalled(1, { call_id: 'a' })));
  test('is completed', () =>
    given(...running, toolCalled(1, { call_id: 'a' }))
      .when({ type: 'complete_turn', run: turn1, answer: turnCompletedData(1) })
      .then(turnCompleted(1)));
  test('is failed', () =>
    given(...running)
      .when({
        type: 'fail_turn',
        run: turn1,
        failure: turnFailedData(1),
      })
      .then(turnFailed(1)));
  test('is interrupted', () =>
    given(...running)
      .when({ type: 'interrupt_turn', turn: 1, reason: 'crash' })
      .then(turnInterrupted(1)));
});

describe('a turn that is not open', () => {
  const commands: SessionCommand[] = [
    { type: 'record_tool_call', run: turn1, call: toolCallData(1, { call_id: 'a' }) },
    { type: 'complete_turn', run: turn1, answer: turnCompletedData(1) },
    {
      type: 'fail_turn',
      run: turn1,
      failure: turnFailedData(1),
    },
    { type: 'interrupt_turn', turn: 1, reason: 'deadline' },
  ];
  test.each(commands.map((command) => [command.type, command] as const))(
    'can not be ended or added to: %s',
    (_type, command) => {
      given().when(command).thenRejected('turn_not_open');
      given(...running, turnCompleted(1))
        .when(command)
        .thenRejected('turn_not_open');
      given(...running, turnInterrupted(1), turnStarted(2))
        .when(command)
        .thenRejected('turn_not_open');
    },
  );
});

describe('while a turn is open', () => {
  const another = { turn: 1, owner: 'instance-2' };
  const commands: SessionCommand[] = [
    { type: 'record_tool_call', run: another, call: toolCallData(1, { call_id: 'a' }) },
    { type: 'complete_turn', run: another, answer: turnCompletedData(1) },
    {
      type: 'fail_turn',
      run: another,
      failure: { code: 'model_error', message: 'It broke.', calls: [] },
    },
  ];
  test.each(commands.map((command) => [command.type, command] as const))(
    'only its own run may do what belongs to a turn: %s',
    (_type, command) =>
      given(...running)
        .when(command)
        .thenRejected('turn_of_another_run'),
  );
});

describe('summing up older turns', () => {
  const compaction = sessionCompacted(1, 1).data as SessionCompactedData;
  const compact = { type: 'compact_session', compaction } as const;

  test('is recorded between turns, and the next turn goes on', () => {
    given(...running, turnCompleted(1))
      .when(compact)
      .then({ type: 'session.compacted.v1', data: compaction });
    given(...running, turnCompleted(1), sessionCompacted(1, 1))
      .when(startTurn(false))
      .then(turnStarted(2, turnStartData));
  });

  test('is refused while a turn is open, once the session is erased, and where there is none', () => {
    given(...running)
      .when(compact)
      .thenRejected('turn_open');
    given(...running, sessionErased())
      .when(compact)
      .thenRejected('session_erased');
    given().when(compact).thenRejected('session_missing');
  });
});

describe('erasing a session', () => {
  const erase: SessionCommand = { type: 'erase_session', reason: 'request', key_ids: ['k'] };
  const erased = sessionErased({ key_ids: ['k'] });
  const past = [...running, turnCompleted(1)] as const;

  test('says why, and which keys go', () => {
    given(...past)
      .when({ ...erase, reason: 'retention', note: 'ninety days' })
      .then(sessionErased({ reason: 'retention', note: 'ninety days', key_ids: ['k'] }));
    given(sessionStarted()).when(erase).then(erased);
  });
  test('ends an open turn with it, whoever runs it', () =>
    given(...running)
      .when(erase)
      .then(
        { type: 'session.turn_interrupted.v1', data: { turn: 1, reason: 'cancelled' } },
        erased,
      ));
  test('decides nothing a second time', () =>
    given(...past, erased)
      .when(erase)
      .then());
  test('is refused where there is none', () => given().when(erase).thenRejected('session_missing'));

  const commands: SessionCommand[] = [
    startTurn(false),
    startTurn(true),
    { type: 'record_tool_call', run: turn1, call: toolCallData(1) },
    { type: 'complete_turn', run: turn1, answer: turnCompletedData(1) },
    { type: 'fail_turn', run: turn1, failure: turnFailedData(1) },
    { type: 'interrupt_turn', turn: 1, reason: 'crash' },
  ];
  test.each(commands.map((command) => [command.type, command] as const))(
    'leaves nothing that could follow it: %s',
    (_type, command) =>
      given(...running, turnInterrupted(1), erased)
        .when(command)
        .thenRejected('session_erased'),
  );
  test("says so to its own agent's runs only", () =>
    given(...past, erased)
      .when(startTurn(false, 'agent_2'))
      .thenRejected('session_of_another_agent'));
});

describe('describing a session', () => {
  const described = (labels: Record<string, string>, title: string | null = null) =>
    ({
      type: 'describe_session',
      before: { title: 'Old', labels: { a: '1' } },
      after: { title, labels },
    }) as const;

  test('says all that it is called after the change, in one order', () => {
    given(...running, turnCompleted(1))
      .when(described({ b: '2', a: '1' }, 'New'))
      .then(sessionDescribed({ a: '1', b: '2' }, 'New', 1));
    given(...running, turnFailed(1))
      .when(described({}))
      .then(sessionDescribed({}, undefined, 1));
  });
  test('decides nothing where it is called so already', () =>
    given(...running, turnCompleted(1))
      .when(described({ a: '1' }, 'Old'))
      .then());
  test('waits for the end of a turn, and begins no session', () => {
    given(...running)
      .when(described({}))
      .thenRejected('turn_open');
    given().when(described({})).thenRejected('session_missing');
    given(...running, sessionErased())
      .when(described({}))
      .thenRejected('session_erased');
  });
  test('neither numbers turns nor ends one', () =>
    given(...running, turnCompleted(1), sessionDescribed())
      .when(startTurn(false))
      .then(turnStarted(2, turnStartData)));
});
