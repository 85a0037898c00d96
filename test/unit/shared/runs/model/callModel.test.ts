import { beforeEach, describe, expect, test } from '@jest/globals';
import { completeWithFallbacks } from '../../../../../shared/runs/model/callModel.ts';
import { createHeldAnswers } from '../../../../../shared/runs/model/heldAnswers.ts';
import type { RunContext } from '../../../../../shared/runs/context.ts';
import type { RunRequest } from '../../../../../shared/runs/runRequest.ts';
import type { ModelCall } from '../../../../../shared/sessions/turns/promptParts.ts';
import { TurnlogError } from '../../../../../shared/lib/errors/turnlogError.ts';
import { NoRoomForAnswer, type ModelCaller } from '../../../../../shared/ports/chatModel.ts';

const overloaded = new TurnlogError('model_overloaded', 'full', { retriable: true });

let asked: string[];
let failures: Record<string, unknown>;
let count: () => Promise<number>;
let abort: AbortController;
/** The kind of text that models stream before they fail. */
let streamed: 'onDelta' | 'onReasoning' | undefined;
/** The model that streams nothing. */
let silent: string | undefined;
let shown: string[];
let empty: string[];
let passedOver: (string | undefined)[];
beforeEach(() => {
  [asked, shown, streamed] = [[], [], undefined];
  [empty, passedOver, silent] = [[], [], undefined];
  failures = {};
  count = async () => 10;
  abort = new AbortController();
});

const MODELS: Record<string, object> = {
  first: { fallbacks: ['narrow', 'wide'] },
  narrow: { id: 'narrow', upstream_model: 'n', context_window: 40 },
  wide: { id: 'wide', upstream_model: 'w', context_window: 100_000 },
};

/** A run of the model `first`, with a prompt of some hundred bytes. */
function ask(calls: Partial<ModelCall>[] = []) {
  const context = {
    catalogue: {
      models: {
        find: (id: string) => MODELS[id],
        complete: async (id: string, _: object, __: AbortSignal, caller: ModelCaller) => {
          asked.push(id);
          if (streamed && id !== silent) caller[streamed]?.(`of ${id}`);
          if (id in failures) throw failures[id];
          return { content: empty.includes(id) ? null : 'Hi', tool_calls: [] };
        },
      },
    },
    budget: { counter: { longestToken: 128, count: () => count() } },
  } as unknown as RunContext;
  const of = {
    agent: { model: 'first', parameters: null },
    actor: { account_id: 'a' },
  } as unknown as RunRequest;
  const request = {
    model: 'f',
    messages: [{ role: 'user' as const, content: 'word '.repeat(50) }],
  };
  return completeWithFallbacks(
    context,
    {
      run: of,
      request,
      calls: calls as ModelCall[],
      held: createHeldAnswers(),
      onDelta: (text) => shown.push(text),
      onReasoning: (text) => shown.push(text),
    },
    abort.signal,
    async ({ fallback }) => void passedOver.push(fallback?.model),
  );
}

describe('a model that fails', () => {
  test('is replaced by the first fallback whose context holds the prompt', async () => {
    failures = { first: overloaded };
    expect((await ask()).fallback).toEqual({ model: 'narrow', upstream_model: 'n' });
    count = async () => 1_000;
    expect((await ask()).fallback).toEqual({ model: 'wide', upstream_model: 'w' });
    expect(asked).toEqual(['first', 'narrow', 'first', 'wide']);
  });

  test('is replaced by the next fallback after an empty answer, unless reasoning was shown', async () => {
    failures = { first: overloaded };
    empty = ['narrow'];
    expect((await ask()).fallback?.model).toBe('wide');
    expect(passedOver).toEqual(['narrow']);
    [streamed, silent] = ['onReasoning', 'first'];
    expect((await ask()).fallback?.model).toBe('narrow');
    [streamed, empty, passedOver] = [undefined, ['narrow', 'wide'], []];
    await expect(ask()).rejects.toBe(overloaded);
    expect(passedOver).toEqual(['narrow', 'wide']);
  });

  test('is replaced by no fallback of which nobody can say whether it fits', async () => {
    failures = { first: overloaded };
    count = () => Promise.reject(new TurnlogError('overloaded', 'no time'));
    expect((await ask()).fallback?.model).toBe('wide');
  });

  test.each<[string, unknown]>([
    ['this process has no room for its answer', new NoRoomForAnswer()],
    ['it refused the request', new TurnlogError('model_error', 'refused (400)')],
    ['something else is wrong', new Error('a defect')],
  ])('is not replaced where %s', async (_, failure) => {
    failures = { first: failure };
    await expect(ask()).rejects.toBe(failure);
    expect(asked).toEqual(['first']);
  });

  test('is not replaced when the time of the run is over', async () => {
    const reason = new Error('the time is over');
    failures = { first: overloaded };
    count = async () => {
      abort.abort(reason);
      return 1_000;
    };
    failures['wide'] = overloaded;
    await expect(ask()).rejects.toBe(reason);
  });

  test('is not replaced after it has answered once in the turn', async () => {
    failures = { first: overloaded };
    await expect(ask([{}])).rejects.toBe(overloaded);
    expect(asked).toEqual(['first']);
  });

  test.each(['onDelta', 'onReasoning'] as const)(
    'is not replaced after it has shown text to %s',
    async (kind) => {
      streamed = kind;
      failures = { first: overloaded };
      await expect(ask()).rejects.toBe(overloaded);
      expect([asked, shown]).toEqual([['first'], ['of first']]);
    },
  );

  test('leaves the rest of a turn to the fallback that began it', async () => {
    const fallback = { model: 'wide', upstream_model: 'w' };
    expect(await ask([{ fallback }])).toMatchObject({ fallback, request: { model: 'w' } });
    expect(asked).toEqual(['wide']);
  });
});
