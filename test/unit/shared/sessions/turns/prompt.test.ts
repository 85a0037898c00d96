import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  chatRequest,
  fallbackRequest,
  turnsFromEvents,
  type Turn,
} from '../../../../../shared/sessions/turns/prompt.ts';
import {
  sessionStarted,
  toolCallData,
  toolCalled,
  turnCompleted,
  turnFailed,
  turnInterrupted,
  turnStarted,
} from '../../../../support/builders/events.ts';

const current = (turn: number): Turn => ({ turn, input: 'now', tool_calls: [], output: undefined });

describe('a request with parameters', () => {
  const schema = { type: 'object', properties: { b: {}, a: {} } };
  const settings = {
    model: 'm',
    max_completion_tokens: 9,
    response_format: {
      type: 'json_schema' as const,
      json_schema: { name: 'n', schema: JSON.stringify(schema), strict: false },
    },
    temperature: 0,
  };
  const request = chatRequest(settings, 'i', [], current(1));

  test('has the schema as it was recorded, and its members in canonical order', () => {
    expect(request.response_format).toEqual(settings.response_format);
    expect(request.temperature).toBe(0);
    expect(Object.keys(request)).toEqual(Object.keys(request).toSorted());
  });

  test('goes to a fallback with its name and its limit, and nothing else changed', () => {
    const { max_completion_tokens: _, ...rest } = request;
    const other = { model: 'other', upstream_model: 'o' };
    expect(fallbackRequest(other, request)).toEqual({ ...rest, model: 'o' });
    const limited = fallbackRequest({ ...other, max_completion_tokens: 5 }, request);
    expect(limited).toEqual({ ...rest, model: 'o', max_completion_tokens: 5 });
    expect(Object.keys(limited)).toEqual(Object.keys(limited).toSorted());
  });
});

describe('turnsOf', () => {
  test('gathers input, tool calls and output of each turn', () => {
    const turns = turnsFromEvents([
      sessionStarted(),
      turnStarted(1, { input: 'a' }),
      toolCalled(1, { call_id: 'x' }),
      turnCompleted(1, { output: 'A' }),
      turnStarted(2, { input: 'b' }),
      turnFailed(2),
    ]);
    expect(turns).toEqual([
      { turn: 1, input: 'a', tool_calls: [toolCallData(1, { call_id: 'x' })], output: 'A' },
      { turn: 2, input: 'b', tool_calls: [], output: undefined },
    ]);
  });

  test('leaves out what belongs to a turn whose start was not read', () => {
    expect(
      turnsFromEvents([
        toolCalled(1, { call_id: 'x' }),
        turnCompleted(1),
        turnStarted(2, { input: 'b' }),
      ]),
    ).toEqual([{ turn: 2, input: 'b', tool_calls: [], output: undefined }]);
  });
});

describe('chatRequest', () => {
  test('puts the instruction first, then completed turns oldest first, then the input', () => {
    const history = turnsFromEvents([
      turnStarted(1, { input: 'a' }),
      turnCompleted(1, { output: 'A' }),
      turnStarted(2, { input: 'b' }),
      turnCompleted(2, { output: 'B' }),
    ]);
    expect(
      chatRequest({ model: 'm', max_completion_tokens: 9 }, 'Be brief.', history, current(3)),
    ).toEqual({
      model: 'm',
      max_completion_tokens: 9,
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'a' },
        { role: 'assistant', content: 'A' },
        { role: 'user', content: 'b' },
        { role: 'assistant', content: 'B' },
        { role: 'user', content: 'now' },
      ],
    });
  });

  test('repeats each tool round as the model asked for it, every call followed by its result', () => {
    const calls = [
      { ...toolCallData(1, { call_id: 'x' }), content: 'Let me see.', reasoning: 'A product.' },
      toolCallData(1, { call_id: 'y' }),
      toolCallData(1, { round: 2, call_id: 'z' }),
    ];
    const { messages } = chatRequest({ model: 'm' }, 'i', [], {
      turn: 1,
      input: 'q',
      tool_calls: calls,
      output: undefined,
    });
    const asked = (id: string) => ({
      id,
      type: 'function',
      function: { name: 'calculator', arguments: '{"expression":"12*34"}' },
    });
    expect(messages.slice(2)).toEqual([
      {
        role: 'assistant',
        content: 'Let me see.',
        reasoning_content: 'A product.',
        tool_calls: [asked('x'), asked('y')],
      },
      { role: 'tool', content: '408', tool_call_id: 'x' },
      { role: 'tool', content: '408', tool_call_id: 'y' },
      { role: 'assistant', content: null, tool_calls: [asked('z')] },
      { role: 'tool', content: '408', tool_call_id: 'z' },
    ]);
  });

  test('never shows the model an unpaired message or tool call, however earlier turns ended', () => {
    const ending = fc.constantFrom('completed', 'failed', 'interrupted', 'open');
    const turn = fc.record({ ending, calls: fc.integer({ min: 0, max: 3 }) });
    fc.assert(
      fc.property(fc.array(turn, { maxLength: 8 }), (turns) => {
        const events = turns.flatMap(({ ending: how, calls }, index) => {
          const number = index + 1;
          const end = {
            completed: [turnCompleted(number)],
            failed: [turnFailed(number)],
            interrupted: [turnInterrupted(number)],
            open: [],
          }[how];
          return [
            turnStarted(number),
            ...Array.from({ length: calls }, (_, call) =>
              toolCalled(number, { round: call + 1, call_id: `${number}-${call}` }),
            ),
            ...end,
          ];
        });
        const { messages } = chatRequest(
          { model: 'm' },
          'i',
          turnsFromEvents(events),
          current(turns.length + 1),
        );
        expect(messages[0]?.role).toBe('system');
        expect(messages.at(-1)).toEqual({ role: 'user', content: 'now' });
        const spoken = messages
          .slice(1)
          .filter(
            (message) =>
              message.role === 'user' || (message.role === 'assistant' && !message.tool_calls),
          );
        expect(spoken.map(({ role }) => role)).toEqual(
          spoken.map((_, index) => (index % 2 === 0 ? 'user' : 'assistant')),
        );
        const asked = messages.flatMap((message) =>
          message.role === 'assistant' ? (message.tool_calls ?? []).map(({ id }) => id) : [],
        );
        expect(
          messages.flatMap((message) => (message.role === 'tool' ? [message.tool_call_id] : [])),
        ).toEqual(asked);
      }),
    );
  });
});
