import { expect, jest, test } from '@jest/globals';
import { digestOfJson, sha256 } from '../../../../../shared/eventlog/hashChain.ts';
import { writeJson } from '../../../../../shared/eventlog/canonicalJson.ts';
import { jsonSlices, prettyJsonSlices } from '../../../../../shared/lib/slices.ts';
import { correctInSlices } from '../../../../../shared/runs/model/callModel.ts';
import { bytesOfTurns } from '../../../../../shared/runs/model/contextWindow.ts';
import type { ChatRequest } from '../../../../../shared/sessions/turns/chat.ts';
import { chatRequest } from '../../../../../shared/sessions/turns/prompt.ts';

import {
  applyRequestForm,
  type RequestForm,
} from '../../../../../shared/sessions/turns/requestForm.ts';
import { requestBody } from '../../../../../shared/sessions/turns/requestBody.ts';
import { toolCallData } from '../../../../support/builders/events.ts';

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

const toolCall = (
  call_id: string,
  call: { extra?: string; tool?: string; arguments?: string },
) => ({
  ...toolCallData(1, { call_id, tool: 'f', arguments: '{"b":1,"a":2}', result: 'r' }),
  ...call,
});
const EXTRAS = [
  '{"extra_content":{"google":{"thought_signature":"x=="}}}',
  '{"7":[{},{"z":1,"a":"é"}],"b":null,"a":1e21,"__proto__":{"p":1},"function":{"strict":true,"b":[]}}',
  '{"function":{"note":"n"},"z":0}',
] as const;
const earlier = {
  turn: 1,
  input: 'q',
  output: 'a',
  tool_calls: [
    toolCall('c1', { extra: EXTRAS[0] }),
    toolCall('c2', { extra: EXTRAS[1] }),
    toolCall('c3', {}),
    toolCall('c4', { extra: EXTRAS[2], tool: 'ключ', arguments: '[' }),
  ],
};

test.each<[RequestForm, string, string]>([
  [
    {},
    'c65cfe3189284b325100894beed6ab1b8787c663044ec2a7f737be4ef8ab0b30',
    '3aeeae3567fd066218c545e80faf4b67907b5c27d9e4d8c4579de421f0fa82ba',
  ],
  [
    { corrected_calls: true },
    '7d3864aeff6490a64a29166f3fe0ac9b03ebe78d1ff69f62d26972cfd5ced19f',
    'bc992ab7e0122e0249e3401b8bd3142b2e50c23e1c213ab3558a95e7e9a9dd06',
  ],
  [
    { without: ['tool_call_fields', 'response_format'] },
    '5bf510a44346993fb3ff28efdc6054c7c9b66ab9dce34d7859b8dc96eb3412c0',
    '5bf510a44346993fb3ff28efdc6054c7c9b66ab9dce34d7859b8dc96eb3412c0',
  ],
])(
  "a request with a provider's fields of tool calls has the digests that earlier releases recorded: %j",
  async (form, recorded, sent) => {
    const request = applyRequestForm(form, chatRequest(settings, 'i', [earlier], current));
    expect(await digestsOf(request)).toEqual([recorded, sent]);
  },
);

test("a provider's fields of tool calls stay text until their message is written", async () => {
  const parse = jest.spyOn(JSON, 'parse');
  const request = chatRequest(settings, 'i', [earlier, earlier], current);
  expect(bytesOfTurns([{ ...earlier }])).toBeGreaterThan(EXTRAS.join('').length);
  await correctInSlices(request, 'a');
  requestBody(request);
  expect(parse.mock.calls.filter(([text]) => EXTRAS.includes(text as never))).toEqual([]);
  parse.mockRestore();
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
