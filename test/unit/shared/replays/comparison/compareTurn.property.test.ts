import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  compareTurn,
  type ComparedTurn,
  compareTools,
  type ComparedCall,
} from '../../../../../shared/replays/comparison/compareTurn.ts';
import type { ModelCall } from '../../../../../shared/sessions/turns/promptParts.ts';

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
const started = {
  turn: 1,
  input: 'What time is it?',
  agent_revision: 0,
  model: 'm',
  settings: { model: 'm' },
  context_from_turn: 1,
  owner: 'o',
  deadline: '2026-01-01T00:00:00.000Z',
};
const common = { turn: 1, tokens: TOKENS, duration_ms: 4 };
const made = fc.array(modelCall, { maxLength: 3 });
const toolCalls = calls.map((of) =>
  of.map((one) => ({ ...one, turn: 1, call_id: 'c', duration_ms: 1 })),
);
const completed = (output: string, of: ModelCall[]): ComparedTurn['end'] => ({
  type: 'session.turn_completed.v1',
  data: { ...common, output, model: 'm', tool_used: '', finish_reason: 'stop', calls: of },
});
const failed = (of: ModelCall[]): ComparedTurn['end'] => ({
  type: 'session.turn_failed.v1',
  data: { turn: 1, code: 'model_error', message: 'No', tokens: TOKENS, calls: of },
});
const answer = fc.tuple(few('yes', 'no'), made).map(([output, of]) => completed(output, of));
const answered: fc.Arbitrary<ComparedTurn> = fc
  .tuple(toolCalls, answer)
  .map(([of, end]) => ({ started, calls: of, end }));
const unanswered: fc.Arbitrary<ComparedTurn> = fc
  .tuple(toolCalls, made.map(failed))
  .map(([of, end]) => ({ started, calls: of, end }));
const turn = fc.oneof(answered, unanswered);
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

const dataOf = ({ end }: ComparedTurn) => end?.data as { output?: string; calls: ModelCall[] };

test('an outcome says of two turns what became of the answer', () => {
  fc.assert(
    fc.property(turn, turn, (recorded, replayed) => {
      const { outcome, code, requests } = compareTurn(recorded, replayed, price);
      const [before, after] = [dataOf(recorded), dataOf(replayed)];
      const same = before.output === after.output ? 'same' : 'changed';
      const due = after.output === undefined ? 'failed' : same;
      expect(outcome).toBe(before.output === undefined ? 'skipped' : due);
      expect(code).toBe(outcome === 'failed' ? 'model_error' : undefined);
      const hashes = [before, after].map((of) => of.calls.map((one) => one.request_sha256).join());
      expect(requests).toBe(hashes[0] === hashes[1] ? 'same' : 'changed');
    }),
  );
});

const one: ComparedTurn = { started, calls: [], end: completed('Ho', []) };
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
    { ...one, end: completed('Ho', [asked(), asked('other')]) },
    { ...one, end: completed('Ho', [asked(), asked('unpriced')]) },
    costOf,
  );
  expect(recorded.cost).toEqual({ amount: '0.75', currency: 'EUR' });
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

test('of a replay that was cut off, or is open, the turn has failed', () => {
  const cut = { turn: 1, reason: 'crash', cause: 'shutdown' } as const;
  const interrupted = { type: 'session.turn_interrupted.v1', data: cut } as const;
  const { outcome, code } = compareTurn(one, { ...one, end: interrupted }, price);
  expect({ outcome, code }).toEqual({ outcome: 'failed', code: 'shutdown' });
  expect(compareTurn(one, { ...one, end: undefined }, price).outcome).toBe('failed');
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
