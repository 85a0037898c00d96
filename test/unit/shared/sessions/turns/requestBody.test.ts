import { expect, jest, test } from '@jest/globals';
import { digestOfJson, sha256 } from '../../../../../shared/eventlog/hashChain.ts';
import { writeJson } from '../../../../../shared/eventlog/canonicalJson.ts';
import { jsonSlices, prettyJsonSlices } from '../../../../../shared/lib/slices.ts';
import type { ChatRequest } from '../../../../../shared/sessions/turns/chat.ts';
import { chatRequest } from '../../../../../shared/sessions/turns/prompt.ts';
import { requestBody } from '../../../../../shared/sessions/turns/requestBody.ts';

/** Members in an order that is not the alphabet's, and numbers that are written in several ways. */
const schema = JSON.stringify({
  type: 'object',
  properties: {
    sum: { type: 'number', minimum: -1e-7 },
    'é"': {},
    10: {},
    a: { enum: ['\u2028', null] },
  },
  required: ['sum'],
});
const settings = {
  max_completion_tokens: 9,
  model: 'm',
  response_format: {
    type: 'json_schema' as const,
    json_schema: { strict: true, schema, name: 'n"' },
  },
  temperature: 0.1,
};
const current = { turn: 2, input: 'now', tool_calls: [], output: undefined };

/** The text that is sent. */
async function sentText(request: ChatRequest): Promise<string> {
  const pieces: string[] = [];
  await writeJson(requestBody(request), {
    accountId: 'a',
    write: (text) => void pieces.push(text),
  });
  return pieces.join('');
}

/** The digests of the recorded and of the sent form. */
async function digestsOf(request: ChatRequest): Promise<string[]> {
  const text = await sentText(request);
  // What the API shows is the same.
  expect([...jsonSlices(requestBody(request))].join('')).toBe(text);
  const pretty = JSON.stringify(JSON.parse(text), null, 2);
  expect([...prettyJsonSlices(requestBody(request))].join('')).toBe(pretty);
  return [(await digestOfJson(requestBody(request), 'a')).sha256, sha256(text)];
}

test('a request with a schema has the digests that earlier releases recorded', async () => {
  expect(await digestsOf(chatRequest(settings, 'i', [], current))).toEqual([
    '5db35d9ab477e74a71712b68cc0c4340d1a0fef29b21f4ecf73df4abcde65f18',
    '31fc98e5e50898f780681881247848febc18d7c3e6359a3e98957601d719a47b',
  ]);
});

test('the schema of a request stays text until it is written, and is sent without parsing it', async () => {
  const examples = JSON.stringify({ examples: Array.from({ length: 9_970 }, () => ({})) });
  const json_schema = { name: 'n', schema: examples };
  const parse = jest.spyOn(JSON, 'parse');
  const request = chatRequest(
    { model: 'm', response_format: { type: 'json_schema', json_schema } },
    'i',
    [],
    current,
  );
  expect(await sentText(request)).toContain(`"schema":${examples}}`);
  expect(parse).not.toHaveBeenCalled();
  parse.mockRestore();
});
