import { expect, test } from '@jest/globals';
import { LIMITS } from '../../../../shared/limits.ts';
import { SESSION_WRITERS } from '../../../../shared/exports/formats.ts';
import {
  collectTools,
  recordCollector,
  exportedSteps,
  type ExportedTurn,
} from '../../../../shared/exports/record.ts';
import {
  at,
  modelCall,
  sessionStarted,
  toolCalled,
  turnCompleted,
  turnFailed,
  turnInterrupted,
  turnStartData,
  turnStarted,
} from '../../../support/builders/events.ts';
import { agent, session, turnsOf, written } from '../../../support/processes/exports/written.ts';

test('a turn is told only once it has ended', () => {
  expect(turnsOf(sessionStarted(), turnStarted(1), toolCalled(1))).toEqual([]);
  const [turn] = turnsOf(sessionStarted(), turnStarted(1), toolCalled(1), turnCompleted(1));
  expect([turn!.started.recorded_at, turn!.ended.recorded_at]).toEqual([at(1), at(3)]);
});

test('a turn that was cut off between two calls of tools has the answers that called them', () => {
  const [turn] = turnsOf(
    turnStarted(1),
    toolCalled(1, { round: 1, content: 'First.' }),
    toolCalled(1, { round: 2 }),
    turnInterrupted(1),
  );
  expect(exportedSteps(turn!)).toMatchObject([
    { call: undefined, text: 'First.', tool_calls: [{ data: { round: 1 } }] },
    { call: undefined, text: null, tool_calls: [{ data: { round: 2 } }] },
  ]);
});

test('an answer that was not what was asked for is the last of a turn that failed', () => {
  const [turn] = turnsOf(turnStarted(1), turnFailed(1, { output: 'no JSON', calls: [modelCall] }));
  expect(exportedSteps(turn!)).toEqual([{ call: modelCall, text: 'no JSON', tool_calls: [] }]);
});

test('an empty answer is an answer, and an empty result is a result', () => {
  const turns = turnsOf(
    turnStarted(1),
    toolCalled(1, { round: 1, result: '' }),
    turnCompleted(1, { output: '', calls: [modelCall, modelCall] }),
  );
  const { messages } = JSON.parse(written('openai-chat', turns)) as { messages: object[] };
  expect(messages.slice(-2)).toMatchObject([
    { role: 'tool', content: '' },
    { role: 'assistant', content: '' },
  ]);
  const { steps } = JSON.parse(written('atif', turns)) as { steps: any[] };
  expect(steps.slice(-2)).toMatchObject([
    { observation: { results: [{ content: '' }] } },
    { source: 'agent', message: '' },
  ]);
  const { samples } = JSON.parse(written('inspect', turns)) as { samples: any[] };
  expect(samples[0].output.choices[0].message.content).toBe('');
});

test('the title and the labels of a session are in the formats that have a place for them', () => {
  const texts = { title: 'A refund', labels: { customer: '4711' } };
  const [turn] = turnsOf(turnStarted(1), turnCompleted(1, { calls: [modelCall] }));
  const parse = (format: 'atif' | 'inspect'): any => {
    const writer = SESSION_WRITERS[format]({ ...session, ...texts });
    return JSON.parse([...writer.add(turn!, agent), ...writer.end()].join(''));
  };
  expect(parse('atif').extra).toEqual({ ...texts, created_at: session.created_at });
  expect(parse('inspect').eval.metadata).toEqual({ agent_id: session.agent_id, ...texts });
});

test.each(['openai-chat', 'atif'] as const)(
  'tools that a server renames all the time are left out of %s beyond a limit, and written in pieces',
  (format) => {
    const toolsOf = (turn: number) =>
      Array.from({ length: 10 }, (_, index) => ({
        type: 'function' as const,
        function: {
          name: `tool_${turn}_${index}`,
          description: 'x'.repeat(20_000),
          parameters: {},
        },
      }));
    const turns = turnsOf(
      ...Array.from({ length: 10 }, (_, index) => index + 1).flatMap((turn) => [
        turnStarted(turn, {
          settings: { ...turnStartData.settings, tools: toolsOf(turn) },
        }),
        turnCompleted(turn, { calls: [modelCall] }),
      ]),
    );
    const writer = SESSION_WRITERS[format](session);
    const pieces = turns.flatMap((turn) => [...writer.add(turn, agent)]);
    const end = [...writer.end()];
    expect(Math.max(...end.map(({ length }) => length))).toBeLessThan(20_000);
    const line = JSON.parse([...pieces, ...end].join(''));
    const tools: object[] = format === 'atif' ? line.agent.tool_definitions : line.tools;
    expect(tools.slice(0, 10)).toEqual(toolsOf(1));
    expect(tools).toHaveLength(
      Math.floor(LIMITS.export.toolsChars / JSON.stringify(tools[0]).length),
    );
  },
);

test('a definition that was replaced by one that does not fit is left out, too', () => {
  const toolOf = (name: string, length: number) => ({
    type: 'function' as const,
    function: { name, description: 'x'.repeat(length), parameters: {} },
  });
  const tools = collectTools();
  const add = (...definitions: ReturnType<typeof toolOf>[]): void => {
    const [turn] = turnsOf(
      turnStarted(1, { settings: { ...turnStartData.settings, tools: definitions } }),
      turnCompleted(1),
    );
    tools.add(turn!);
  };
  add(toolOf('a', 1), toolOf('b', LIMITS.export.toolsChars - 1_000));
  add(toolOf('a', 2_000));
  expect(tools.list()!.map((parse) => parse())).toMatchObject([{ function: { name: 'b' } }]);
  add(toolOf('a', 3));
  expect(tools.list()).toHaveLength(2);
});

test('ids and times of spans come from the session, the turn and what it took', () => {
  const turns = turnsOf(
    turnStarted(1),
    toolCalled(1, { round: 1, duration_ms: 30 }),
    turnCompleted(1, {
      duration_ms: 500,
      calls: [
        { ...modelCall, duration_ms: 100 },
        { ...modelCall, duration_ms: 200 },
      ],
    }),
  );
  const text = written('otel', turns);
  expect(written('otel', turns)).toBe(text);
  const { spans } = JSON.parse(text).resourceSpans[0].scopeSpans[0] as { spans: any[] };
  const began = Date.parse(at(0));
  expect(
    spans.map((span) => [
      Number(BigInt(span.startTimeUnixNano) / 1_000_000n) - began,
      Number(BigInt(span.endTimeUnixNano) / 1_000_000n) - began,
    ]),
  ).toEqual([
    [0, 100],
    [100, 130],
    [130, 330],
    [0, 500],
  ]);
  const another = SESSION_WRITERS.otel({ ...session, session_id: 'session_2' });
  expect([...another.add(turns[0]!, agent)].join('')).not.toContain(spans[0].traceId);
});

test('a clock that was put back makes no span that ends before it begins', () => {
  const collect = recordCollector();
  collect(turnStarted(1), at(60));
  const turn = collect(turnInterrupted(1), at(0)) as ExportedTurn;
  const [span] = JSON.parse(written('otel', [turn])).resourceSpans[0].scopeSpans[0].spans as any[];
  expect(BigInt(span.endTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(span.startTimeUnixNano));
});
