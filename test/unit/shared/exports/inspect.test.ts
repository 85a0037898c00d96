import { expect, test } from '@jest/globals';
import { LIMITS } from '../../../../shared/limits.ts';
import { modelCall, turnCompleted, turnStarted } from '../../../support/builders/events.ts';
import { turnsOf, written } from '../../../support/processes/exports/written.ts';

/** The members of Object.prototype that loops over members of any object find. */
const inherited = (): string[] => Object.keys(Object.prototype);

test.each(['__proto__', 'constructor', 'toString'])(
  'a model and a finish reason named %s are names like any other',
  (name) => {
    const call = { ...modelCall, model: name, finish_reason: name };
    const text = written(
      'inspect',
      turnsOf(turnStarted(1), turnCompleted(1, { calls: [call, call] })),
    );
    try {
      expect(inherited()).toEqual([]);
    } finally {
      for (const member of inherited()) Reflect.deleteProperty(Object.prototype, member);
    }
    const { samples, stats } = JSON.parse(text) as {
      samples: [{ output: { choices: [{ stop_reason: unknown }] } }];
      stats: { model_usage: object };
    };
    expect(Object.entries(stats.model_usage)).toEqual([
      [name, { input_tokens: 2, output_tokens: 2, total_tokens: 4 }],
    ]);
    expect(samples[0].output.choices[0].stop_reason).toBe('unknown');
  },
);

test('an answer without tool calls has no list of them', () => {
  const text = written('inspect', turnsOf(turnStarted(1), turnCompleted(1)));
  const { samples } = JSON.parse(text) as { samples: [{ messages: { role: string }[] }] };
  const answer = samples[0].messages.at(-1)!;
  expect(answer.role).toBe('assistant');
  expect(answer).not.toHaveProperty('tool_calls');
});

test('the tokens of models beyond a limit, whose names providers choose, are summed together', () => {
  const calls = Array.from({ length: LIMITS.export.models + 2 }, (_, index) => ({
    ...modelCall,
    model: `model_${index}`,
  }));
  const text = written('inspect', turnsOf(turnStarted(1), turnCompleted(1, { calls })));
  const { stats } = JSON.parse(text) as { stats: { model_usage: Record<string, object> } };
  expect(Object.keys(stats.model_usage)).toHaveLength(LIMITS.export.models + 1);
  expect(stats.model_usage['others']).toEqual({
    input_tokens: 2,
    output_tokens: 2,
    total_tokens: 4,
  });
});
