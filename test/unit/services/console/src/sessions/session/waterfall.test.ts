import { describe, expect, test } from '@jest/globals';
import {
  textOf,
  waterfallOf,
  type TurnEvent,
} from '../../../../../../../services/console/src/sessions/session/waterfall.ts';

const STARTED_AT = Date.parse('2026-11-20T09:30:00.000Z');

/** Events in the form of the API; each has the time since the first in milliseconds. */
const history = (...events: readonly [type: string, atMs: number, data: object][]): TurnEvent[] =>
  events.map(([type, atMs, data], revision) => ({
    revision,
    type: `session.${type}.v1`,
    data,
    metadata: { recorded_at: new Date(STARTED_AT + atMs).toISOString() },
  }));

const tokens = (prompt: number, completion: number) => ({
  prompt,
  completion,
  total: prompt + completion,
});
const call = (duration_ms: number, used = tokens(10, 2)) => ({
  model: 'gpt',
  duration_ms,
  tokens: used,
});
const tool = (round: number, duration_ms: number, is_error = false) => ({
  turn: 1,
  round,
  tool: { sha256: '', salt: '', text: 'calculator' },
  duration_ms,
  is_error,
});
const started = { turn: 1, model: 'registry-model' };

describe('the waterfall of a turn', () => {
  test('puts the tools of a round after its model call, and the next call after them', () => {
    const events = history(
      ['started', 0, {}],
      ['turn_started', 0, started],
      ['tool_called', 190, tool(1, 50)],
      ['tool_called', 190, tool(1, 90, true)],
      [
        'turn_completed',
        300,
        { turn: 1, duration_ms: 320, tokens: tokens(20, 4), calls: [call(100), call(120)] },
      ],
    );
    const found = waterfallOf(events)!;
    expect(found).toMatchObject({ revisions: [1, 4], durationMs: 320 });
    expect(
      found.spans.map(({ kind, startMs, durationMs, isError = false }) => [
        kind,
        startMs,
        durationMs,
        isError,
      ]),
    ).toEqual([
      ['model', 0, 100, false],
      ['tool', 100, 50, false],
      ['tool', 100, 90, true],
      ['model', 190, 120, false],
    ]);
    expect(found.spans[0]!.tokens).toEqual(tokens(10, 2));
    expect(found.spans[1]!.name).toBe('calculator');
  });

  test('takes the duration of a failed turn from its times, and has the calls that answered', () => {
    const events = history(
      ['turn_started', 0, started],
      ['tool_called', 60, tool(1, 10)],
      ['turn_failed', 400, { turn: 1, code: 'model_error', calls: [call(50)] }],
    );
    const { durationMs, spans } = waterfallOf(events)!;
    expect(durationMs).toBe(400);
    expect(spans.map(({ kind }) => kind)).toEqual(['model', 'tool']);
  });

  test('is as long as what has happened while the turn runs', () => {
    const events = history(['turn_started', 0, started], ['tool_called', 70, tool(1, 30)]);
    expect(waterfallOf(events)).toMatchObject({ durationMs: 70, revisions: [0, 1] });
  });

  test('is never shorter than its calls', () => {
    const events = history(
      ['turn_started', 0, started],
      ['turn_completed', 5, { turn: 1, duration_ms: 5, tokens: tokens(1, 1), calls: [call(9)] }],
    );
    expect(waterfallOf(events)!.durationMs).toBe(9);
  });

  test('ends with the interruption of the turn', () => {
    const events = history(
      ['turn_started', 0, started],
      ['turn_interrupted', 250, { turn: 1, reason: 'cancelled' }],
    );
    expect(waterfallOf(events)).toMatchObject({ durationMs: 250, spans: [] });
  });

  test('is unknown without the start of the turn', () => {
    expect(waterfallOf(history(['tool_called', 0, tool(1, 1)]))).toBeUndefined();
  });
});

test('a protected text is a string, a box, or erased', () => {
  expect(textOf('plain')).toBe('plain');
  expect(textOf({ text: 'in a box' })).toBe('in a box');
  expect(textOf({ erased: true })).toBeUndefined();
});
