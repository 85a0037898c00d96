import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { compareTools, type ComparedCall } from '../../../shared/commands/replay/compareTools.ts';
import {
  comparedTurn,
  compareTurn,
  type ComparedTurn,
} from '../../../shared/commands/replay/compareTurn.ts';
import type { ModelCall } from '../../../shared/domain/session/parts.ts';

const TOKENS = { prompt: 3, completion: 2, total: 5 };
const few = (...texts: string[]) => fc.constantFrom(...texts);

const call: fc.Arbitrary<ComparedCall> = fc.record({
  round: fc.integer({ min: 1, max: 3 }),
  tool: few('calculator', 'clock'),
  arguments: few('{}', '{"a":1}', '{"a":2}'),
  result: few('1', '2'),
  is_error: fc.boolean(),
});
const calls = fc.array(call, { maxLength: 8 });
const modelCall: fc.Arbitrary<ModelCall> = few('a', 'b').map((request_sha256) => ({
  request_sha256,
  response_id: 'r',
  model: 'm',
  finish_reason: 'stop',
  tokens: TOKENS,
  duration_ms: 1,
}));
const turn: fc.Arbitrary<ComparedTurn> = fc.record({
  turn: fc.integer({ min: 1, max: 9 }),
  model: few('m', 'n'),
  status: fc.constantFrom('completed', 'failed', 'interrupted'),
  input: fc.string(),
  output: few('yes', 'no'),
  code: few('model_error'),
  tokens: fc.constant(TOKENS),
  duration_ms: fc.nat(),
  tool_calls: calls,
  calls: fc.array(modelCall, { maxLength: 3 }),
});
const answered = turn.map((of): ComparedTurn => ({ ...of, status: 'completed', code: undefined }));
const price = () => ({ amount: '0.5', currency: 'EUR' });

test('a turn beside itself is the same, and so is all that it did', () => {
  fc.assert(
    fc.property(answered, (of) => {
      const { outcome, requests, tools } = compareTurn(of, of, price);
      expect({ outcome, requests, tools }).toEqual({
        outcome: 'same',
        requests: 'same',
        tools: { added: 0, missing: 0, changed: 0, unanswered: 0 },
      });
    }),
  );
});

test('what a replay adds, the other way round is missing; what is changed is so either way', () => {
  fc.assert(
    fc.property(calls, calls, (left, right) => {
      const there = compareTools(left, right);
      const back = compareTools(right, left);
      expect([back.added, back.missing, back.changed]).toEqual([
        there.missing,
        there.added,
        there.changed,
      ]);
      expect(left.length - there.missing).toBe(right.length - there.added);
    }),
  );
});

test('calls that are made in another order in one round, as they are in no order, are the same', () => {
  fc.assert(
    fc.property(calls, (of) => {
      const turned = compareTools(of, of.toReversed());
      expect(turned).toEqual({ added: 0, missing: 0, changed: 0, unanswered: 0 });
    }),
  );
});

test('an outcome says of two turns what became of the answer', () => {
  fc.assert(
    fc.property(turn, turn, (recorded, replayed) => {
      const { outcome, code, requests } = compareTurn(recorded, replayed, price);
      const same = recorded.output === replayed.output ? 'same' : 'changed';
      const due = replayed.status === 'completed' ? same : 'failed';
      expect(outcome).toBe(recorded.status === 'completed' ? due : 'skipped');
      expect(code).toBe(outcome === 'failed' ? 'model_error' : undefined);
      const hashes = [recorded, replayed].map((of) =>
        of.calls.map(({ request_sha256 }) => request_sha256).join(),
      );
      expect(requests).toBe(hashes[0] === hashes[1] ? 'same' : 'changed');
    }),
  );
});

const one: ComparedTurn = {
  turn: 1,
  model: 'm',
  status: 'completed',
  input: 'Hi',
  output: 'Ho',
  code: undefined,
  tokens: TOKENS,
  duration_ms: 4,
  tool_calls: [],
  calls: [],
};
const asked = (fallback?: string): ModelCall => ({
  request_sha256: 'a',
  response_id: 'r',
  model: 'm',
  finish_reason: 'stop',
  tokens: TOKENS,
  duration_ms: 1,
  ...(fallback && { fallback: { model: fallback, upstream_model: fallback } }),
});

test('a turn costs what its calls cost, each at the price of the model that answered', () => {
  const prices = new Map([
    ['m', '0.5'],
    ['other', '0.25'],
  ]);
  const costOf = (model: string) => {
    const amount = prices.get(model);
    return amount === undefined ? undefined : { amount, currency: 'EUR' };
  };
  const { recorded, replayed } = compareTurn(
    { ...one, calls: [asked(), asked('other')] },
    { ...one, calls: [asked(), asked('unpriced')] },
    costOf,
  );
  expect(recorded.cost).toBe('0.75');
  expect(replayed).toEqual({ model: 'm', tokens: TOKENS, duration_ms: 4 });
});

test('a turn that was not run again is skipped, with nothing beside it', () => {
  expect(compareTurn(one, undefined, price)).toEqual({
    turn: 1,
    outcome: 'skipped',
    tools: { added: 0, missing: 0, changed: 0, unanswered: 0 },
    recorded: { model: 'm', tokens: TOKENS, duration_ms: 4 },
    checks: [],
  });
});

test('calls that the log had no result for are counted', () => {
  const missing = { round: 1, tool: 't', arguments: '{}', result: '', is_error: true } as const;
  expect(compareTools([], [{ ...missing, replayed: 'missing' }])).toEqual({
    added: 1,
    missing: 0,
    changed: 0,
    unanswered: 1,
  });
});

test('a turn is read from its events', () => {
  const started = {
    turn: 2,
    input: 'What time is it?',
    agent_revision: 0,
    model: 'm',
    settings: { model: 'm' },
    context_from_turn: 1,
    owner: 'o',
    deadline: '2026-01-01T00:00:00.000Z',
  };
  const called = { turn: 2, round: 1, call_id: 'c', tool: 'clock', arguments: '{}' };
  const result = { result: 'noon', is_error: false, duration_ms: 1 };
  const begun = [
    { type: 'session.turn_started.v1' as const, data: started },
    { type: 'session.tool_called.v1' as const, data: { ...called, ...result } },
  ];
  const failed = { turn: 2, code: 'model_error', message: 'No', tokens: TOKENS, calls: [asked()] };
  expect(comparedTurn([...begun, { type: 'session.turn_failed.v1', data: failed }])).toMatchObject({
    turn: 2,
    status: 'failed',
    code: 'model_error',
    tool_calls: [{ tool: 'clock', result: 'noon' }],
    calls: [{ request_sha256: 'a' }],
  });
  const cut = { turn: 2, reason: 'crash', cause: 'shutdown' } as const;
  const interrupted = { type: 'session.turn_interrupted.v1', data: cut } as const;
  expect(comparedTurn([...begun, interrupted])).toMatchObject({
    status: 'interrupted',
    code: 'shutdown',
  });
  expect(() => comparedTurn([interrupted])).toThrow('begin with its start');
});
