import { describe, expect, test } from '@jest/globals';
import type { SessionEvent } from '../../../../shared/sessions/events.ts';
import type { ModelCall } from '../../../../shared/sessions/turns/promptParts.ts';
import {
  modelCall,
  sessionCompacted,
  toolCalled,
  turnCompleted,
  turnStarted,
} from '../../../support/builders/events.ts';
import { turnsOf, written } from '../../../support/processes/exports/written.ts';

/** The attributes of the spans of a turn's events, by their names. */
function attributesOf(...events: SessionEvent[]): Record<string, any>[] {
  const { spans } = JSON.parse(written('otel', turnsOf(...events))).resourceSpans[0]
    .scopeSpans[0] as { spans: { attributes: { key: string; value: object }[] }[] };
  return spans.map(({ attributes }) =>
    Object.fromEntries(attributes.map(({ key, value }) => [key, value])),
  );
}

test.each([0, 0.5, 1, 2])('a temperature of %p is a double, as tokens are none', (temperature) => {
  const [chat, turn] = attributesOf(
    turnStarted(1, { settings: { model: 'm', temperature, max_completion_tokens: 9 } }),
    turnCompleted(1, { calls: [modelCall] }),
  );
  for (const span of [chat!, turn!])
    expect(span).toMatchObject({
      'gen_ai.request.temperature': { doubleValue: temperature },
      'gen_ai.request.max_tokens': { intValue: '9' },
    });
});

test.each([
  [undefined, undefined],
  ['text', { stringValue: 'text' }],
  ['json_object', { stringValue: 'json' }],
  ['json_schema', { stringValue: 'json' }],
] as const)('answers that have to be %p are %p', (type, said) => {
  const settings = { model: 'm', ...(type && { response_format: { type } }) };
  const spans = attributesOf(
    turnStarted(1, { settings }),
    turnCompleted(1, { calls: [modelCall] }),
  );
  expect(spans.map((span) => span['gen_ai.output.type'])).toEqual([said, said]);
});

test('a summary is not what the answers of the turns have to be', () => {
  const settings = { model: 'm', response_format: { type: 'json_object' as const } };
  const [summary] = attributesOf(sessionCompacted(1, 2, { settings }));
  expect(summary).toHaveProperty(['turnlog.compaction.up_to_turn']);
  expect(summary).not.toHaveProperty(['gen_ai.output.type']);
});

describe('the end of an answer', () => {
  const chatOf = (changes: Partial<ModelCall>, ...between: SessionEvent[]) =>
    attributesOf(
      turnStarted(1),
      ...between,
      turnCompleted(1, { calls: [{ ...modelCall, ...changes }, modelCall] }),
    )[0]!;
  const reasonsOf = (chat: Record<string, any>) =>
    chat['gen_ai.response.finish_reasons']?.arrayValue.values;
  const messageOf = (chat: Record<string, any>) =>
    JSON.parse(chat['gen_ai.output.messages'].stringValue)[0];

  test('is told in the word of the provider, and in that of the conventions in its message', () => {
    const chat = chatOf({ finish_reason: 'tool_calls' }, toolCalled(1, { round: 1 }));
    expect(reasonsOf(chat)).toEqual([{ stringValue: 'tool_calls' }]);
    expect(messageOf(chat).finish_reason).toBe('tool_call');
  });

  test('is left out where the provider did not tell it, as the id is', () => {
    const chat = chatOf({ finish_reason: '', response_id: '' }, toolCalled(1, { round: 1 }));
    expect(reasonsOf(chat)).toBeUndefined();
    expect(chat).not.toHaveProperty(['gen_ai.response.id']);
    expect(messageOf(chat).finish_reason).toBe('tool_call');
  });
});
