import { describe, expect, test } from '@jest/globals';
import {
  applyTurnEvent,
  putTurn,
  turnOfTranscript,
  type ChatTurn,
  type TranscriptTurn,
} from '../../../../../../../services/console/src/chat/thread/turnState.ts';

const SENT: ChatTurn = {
  key: 'k',
  input: 'What is 6*7?',
  status: 'sending',
  sessionId: undefined,
  rounds: [],
};
const CALL = {
  round: 1,
  call_id: 'call_1',
  tool: 'calculator',
  arguments: '{"expression":"6*7"}',
  result: '42',
  is_error: false,
  duration_ms: 3,
};
const TOKENS = { prompt: 12, completion: 5, total: 17 };

/** A stream as the API sends it: reasoning, text, two calls, and the answer of the second round. */
const EVENTS: readonly Parameters<typeof applyTurnEvent>[1][] = [
  { event: 'turn.started', data: { session_id: 'session_1', turn: 3 } },
  { event: 'reasoning.delta', id: '3-1-0-r6', data: { round: 1, text: 'I need' } },
  { event: 'reasoning.delta', id: '3-1-0-r12', data: { round: 1, text: ' tools' } },
  { event: 'output.delta', id: '3-1-4', data: { round: 1, text: 'Wait' } },
  { event: 'output.delta', id: '3-1-6', data: { round: 1, text: '…\n' } },
  { event: 'tool.called', id: '3-1-6-1', data: CALL },
  { event: 'tool.called', id: '3-1-6-2', data: { ...CALL, call_id: 'call_2' } },
  { event: 'output.delta', id: '3-2-6', data: { round: 2, text: 'It is ' } },
  { event: 'output.delta', id: '3-2-8', data: { round: 2, text: '42' } },
  {
    event: 'turn.completed',
    id: '3-end',
    data: {
      success: true,
      data: {
        output: 'It is 42',
        session_id: 'session_1',
        metadata: { model: 'm', tokens: TOKENS, finish_reason: 'stop', tool_used: 'calculator' },
      },
    },
  },
];

const applyAll = (
  turn: ChatTurn,
  events: readonly Parameters<typeof applyTurnEvent>[1][],
): ChatTurn => events.reduce(applyTurnEvent, turn);
const WHOLE = applyAll(SENT, EVENTS);

describe('applyTurnEvent', () => {
  test('collects reasoning, text and tool calls by model call, and the usage at the end', () => {
    expect(WHOLE).toEqual({
      ...SENT,
      status: 'completed',
      sessionId: 'session_1',
      number: 3,
      lastEventId: '3-end',
      rounds: [
        {
          reasoning: 'I need tools',
          text: 'Wait…\n',
          calls: [CALL, { ...CALL, call_id: 'call_2' }],
        },
        { reasoning: '', text: 'It is 42', calls: [] },
      ],
      model: 'm',
      tokens: TOKENS,
      failure: undefined,
    });
  });

  test('shows each part as soon as it has come', () => {
    expect(applyAll(SENT, EVENTS.slice(0, 6)).rounds).toEqual([
      { reasoning: 'I need tools', text: 'Wait…\n', calls: [CALL] },
    ]);
    expect(applyAll(SENT, EVENTS.slice(0, 1)).status).toBe('running');
  });

  test('is the same whichever event of the stream is read again', () => {
    for (let cut = 1; cut <= EVENTS.length; cut += 1)
      for (let from = 0; from <= cut; from += 1) {
        const before = applyAll(SENT, EVENTS.slice(0, cut));
        expect(applyAll(before, EVENTS.slice(from))).toEqual(WHOLE);
      }
  });

  test('takes only the new part of an event that it has in part', () => {
    const before = applyAll(SENT, EVENTS.slice(0, 5));
    const recorded = { round: 1, text: 'Wait…\nfor it', recorded: true };
    const after = applyTurnEvent(before, { event: 'output.delta', id: '3-1-12', data: recorded });
    expect(after.rounds[0]!.text).toBe('Wait…\nfor it');
    const reasoned = applyTurnEvent(applyAll(SENT, EVENTS.slice(0, 2)), {
      event: 'reasoning.delta',
      id: '3-1-0-r12',
      data: { round: 1, text: 'I need tools' },
    });
    expect(reasoned.rounds[0]!.reasoning).toBe('I need tools');
  });

  test('continues after the last event that has an id', () => {
    expect(applyAll(SENT, EVENTS.slice(0, 1)).lastEventId).toBeUndefined();
    expect(applyAll(SENT, EVENTS.slice(0, 7)).lastEventId).toBe('3-1-6-2');
  });

  test('has the recorded output where the stream did not have it', () => {
    const end = EVENTS.at(-1)!;
    expect(applyTurnEvent(SENT, end).rounds).toEqual([
      { reasoning: '', text: 'It is 42', calls: [] },
    ]);
    expect(applyAll(SENT, [EVENTS[5]!, end]).rounds[1]!.text).toBe('It is 42');
    expect(applyAll(SENT, [EVENTS[3]!, end]).rounds).toEqual([
      { reasoning: '', text: 'It is 42', calls: [] },
    ]);
  });

  test.each([
    ['model_error', 'failed'],
    ['turn_interrupted', 'interrupted'],
  ])('ends with %s as %s, and keeps what had come', (code, status) => {
    const data = { error: 'No.', code, retry: 'new_key', request_id: 'r' };
    const ended = applyAll(SENT, [...EVENTS.slice(0, 5), { event: 'error', id: '3-end', data }]);
    expect(ended).toMatchObject({
      status,
      failure: { code, message: 'No.', retry: 'new_key' },
      rounds: [{ text: 'Wait…\n' }],
    });
    // Nothing follows the end.
    expect(applyTurnEvent(ended, EVENTS[8]!)).toBe(ended);
  });

  test('ignores kinds of events that it does not know', () => {
    const before = applyAll(SENT, EVENTS.slice(0, 5));
    const after = applyTurnEvent(before, { event: 'turn.paused', data: null });
    expect(after.rounds).toEqual(before.rounds);
  });

  test('does not change the turn that it was given', () => {
    const frozen = Object.freeze({ ...SENT, rounds: Object.freeze([]) });
    expect(() => applyAll(frozen, EVENTS)).not.toThrow();
  });
});

const RECORDED: TranscriptTurn = {
  turn: 3,
  status: 'completed',
  input: 'What is 6*7?',
  output: 'It is 42',
  reasoning: null,
  model: 'm',
  tool_calls: [
    { ...CALL, reasoning: 'I need tools' },
    { ...CALL, call_id: 'call_2' },
  ],
  tokens: TOKENS,
  error: null,
};

describe('turnOfTranscript', () => {
  test('has the rounds of the stream, but not the texts between the calls', () => {
    expect(turnOfTranscript('session_1', RECORDED)).toMatchObject({
      key: '3',
      number: 3,
      status: 'completed',
      tokens: TOKENS,
      rounds: [
        { reasoning: 'I need tools', text: '', calls: [CALL, { call_id: 'call_2' }] },
        { reasoning: '', text: 'It is 42', calls: [] },
      ],
    });
  });

  test('leaves all output of an open turn to its stream', () => {
    const open = turnOfTranscript('session_1', { ...RECORDED, status: 'running', output: null });
    expect(open.rounds).toEqual([]);
    expect(applyAll(open, EVENTS).rounds).toEqual(WHOLE.rounds);
  });

  test('says why a turn failed', () => {
    const error = { code: 'model_error', message: 'No.', retry: 'new_key' };
    const failed = turnOfTranscript('s', {
      ...RECORDED,
      status: 'failed',
      output: null,
      tool_calls: [],
      tokens: null,
      error,
    });
    expect(failed).toMatchObject({ status: 'failed', failure: error, rounds: [] });
  });
});

test('a turn keeps its place among the others', () => {
  const [one, two] = [1, 2].map((turn) => turnOfTranscript('s', { ...RECORDED, turn }));
  const turns = putTurn(putTurn([one!, two!], SENT), { ...one!, status: 'failed' });
  expect(turns.map(({ key, status }) => [key, status])).toEqual([
    ['1', 'failed'],
    ['2', 'completed'],
    ['k', 'sending'],
  ]);
});
