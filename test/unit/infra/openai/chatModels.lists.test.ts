import { describe, expect, test } from '@jest/globals';
import { parseModelList } from '../../../../infra/openai/chatModels.ts';
import { LIMITS } from '../../../../shared/limits.ts';

const known = {
  id: 'gpt-4o',
  provider: 'openai',
  upstream_model: 'gpt-4o',
  context_window: 128_000,
  max_output_tokens: 16_384,
};
const parse = (...data: object[]) => parseModelList({ object: 'list', data }, 'openai', [known]);

test.each([
  ['vLLM', { max_model_len: 4_096 }, 4_096],
  ['OpenRouter', { context_length: 5_000 }, 5_000],
  ['Groq', { context_window: 6_000 }, 6_000],
  ['llama.cpp', { meta: { n_ctx_train: 70_000, n_ctx: 7_000 } }, 7_000],
  ['an older llama.cpp', { meta: { n_ctx_train: 7_000 } }, 7_000],
  ['a server that states none', { meta: null, context_length: '9k', max_model_len: 0 }, 8_192],
])('takes the context window that %s states', (_server, fields, context_window) => {
  expect(parse({ id: 'm', ...fields })).toEqual([
    { id: 'm', provider: 'openai', upstream_model: 'm', context_window },
  ]);
});

test('takes the limits of a known model, and each id once', () => {
  expect(parse({ id: 'gpt-4o' }, { id: 'b' }, { id: 'b' }, { id: '' }).map(({ id }) => id)).toEqual(
    ['gpt-4o', 'b'],
  );
  expect(parse({ id: 'gpt-4o' })).toEqual([known]);
});

test('leaves out models whose ids no agent can have', () => {
  const ids = ['a\0', 'b\ud800', 'x'.repeat(LIMITS.model.labelChars + 1), 'm'];
  expect(parse(...ids.map((id) => ({ id }))).map(({ id }) => id)).toEqual(['m']);
});

test('takes a bounded number of models', () => {
  const many = Array.from({ length: LIMITS.model.listedModels + 1 }, (_, at) => ({ id: `m${at}` }));
  expect(parse(...many)).toHaveLength(LIMITS.model.listedModels);
});

describe('throws model_error', () => {
  test.each([[{ data: [] }], [{ data: [{ name: 'm' }] }], [[]], [null], ['models']])(
    'for %j',
    (body) => {
      expect(() => parseModelList(body, 'openai', [])).toThrow(
        expect.objectContaining({ code: 'model_error' }),
      );
    },
  );
});
