import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { expectFailure } from '../../support/http/failures.ts';
import { startTestService, type Reply, type TestService } from '../../support/http/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ text: '{"sum":2}' });
});
afterAll(() => service.close());

/** Members in an order that is not the alphabet's. */
const response_format = {
  type: 'json_schema',
  json_schema: {
    name: 'answer',
    schema: { type: 'object', properties: { sum: { type: 'number' }, by: { type: 'string' } } },
    strict: true,
  },
};
const fields = { name: 'One', instruction: 'be one', model: 'narrow', component: 'Chat' };
const parameters = { temperature: 0.5, max_output_tokens: 40, response_format, compaction: true };

const send = (method: string, agent: string, body: object): Promise<Reply> =>
  service.send(method, `/v1/agents/${agent}`, body);
const create = (more: object = {}) => service.createAgent({ ...fields, ...more });
const shownIn = ({ status, body }: Reply) => [status, body.data?.revision, body.data?.config];
const parametersIn = ({ body }: Reply) =>
  Object.fromEntries(
    Object.entries(body.data.config).filter(([name]) => Object.keys(parameters).includes(name)),
  );
async function expectShown(agent: string, answer: Reply): Promise<void> {
  const read = await service.get(`/v1/agents/${agent}`);
  expect(read.body.data).toEqual(answer.body.data);
  expect(read.headers.get('etag')).toBe(answer.headers.get('etag'));
}

describe('the parameters of an agent that changes', () => {
  test.each([
    ['PUT', { ...fields, ...parameters }],
    ['PATCH', parameters],
    ['PATCH', { temperature: 0.5, response_format }],
    ['PATCH', {}],
  ])('are recorded once: %s of the same records nothing', async (method, body) => {
    const agent = await create(parameters);
    const answer = await send(method, agent, body);
    expect(answer.body.data.revision).toBe(0);
    await expectShown(agent, answer);
    await service.restart();
    expect((await send(method, agent, body)).body.data.revision).toBe(0);
  });

  test.each([
    ['PUT', fields],
    ['PUT', { ...fields, compaction: false }],
    ['PATCH', { temperature: null, max_output_tokens: null, response_format: null }],
    ['PATCH', { compaction: null, component: null, tool: null }],
    ['PATCH', { compaction: false }],
  ])('that it never had are not taken away: %s %j records nothing', async (method, body) => {
    const agent = await create();
    expect((await send(method, agent, body)).body.data.revision).toBe(0);
  });

  test.each(Object.keys(parameters))('stay but for %s, which PATCH gives null', async (name) => {
    const agent = await create(parameters);
    const answer = await send('PATCH', agent, { [name]: null });
    const { [name as 'temperature']: _, ...left } = parameters;
    expect(parametersIn(answer)).toEqual(left);
    expect(answer.body.data.revision).toBe(1);
    await expectShown(agent, answer);
  });

  test.each(Object.entries(parameters))('take %s by PATCH and by PUT', async (name, value) => {
    const patched = await create();
    const answer = await send('PATCH', patched, { [name]: value });
    expect(answer.body.data.config).toMatchObject({ [name]: value });
    await expectShown(patched, answer);
    const put = await create(parameters);
    const replaced = await send('PUT', put, { ...fields, [name]: value });
    expect(parametersIn(replaced)).toEqual({ [name]: value });
    await expectShown(put, replaced);
  });

  test('are refused beyond what the model has, by PATCH and by PUT', async () => {
    const agent = await create();
    for (const [method, body] of [
      ['PATCH', { max_output_tokens: 51 }],
      ['PUT', { ...fields, max_output_tokens: 51 }],
    ] as const)
      expect(shownIn(await send(method, agent, body))).toEqual([400, undefined, undefined]);
    const wide = await create({ model: 'scripted', max_output_tokens: 1000 });
    const moved = await send('PATCH', wide, { model: 'narrow' });
    const { details } = expectFailure(moved, 'invalid_request');
    expect(Object.keys(details!)).toEqual(['max_output_tokens']);
    const both = { model: 'narrow', max_output_tokens: 50 };
    expect((await send('PATCH', wide, both)).body.data.config).toMatchObject(both);
  });

  test.each<[string, number, object]>([
    ['a half character', 400, { type: 'object', description: '\ud800' }],
    ['a half character in a name', 400, { properties: { '\udc00': {} } }],
    ['a NUL', 200, { description: '\u0000' }],
    ['__proto__', 400, JSON.parse('{"properties":{"__proto__":{"type":"number"}}}')],
  ])('with a schema with %s are answered %i', async (_, status, schema) => {
    const created = await service.post('/v1/agents', {
      ...fields,
      model: 'scripted',
      response_format: { type: 'json_schema', json_schema: { name: 'a', schema } },
    });
    expect(created.status).toBe(status);
    if (status === 400) return;
    const { agent_id } = created.body.data;
    expect((await service.post(`/v1/agents/${agent_id}/run`, { input: 'x' })).status).toBe(200);
  });

  test('merge a patch with the response format member by member (RFC 7396)', async () => {
    const agent = await create(parameters);
    const format = async (patch: object): Promise<unknown> =>
      (await send('PATCH', agent, { response_format: patch })).body.data.config.response_format;
    const { json_schema } = response_format;
    expect(await format({ json_schema: { strict: null, name: 'other' } })).toEqual({
      type: 'json_schema',
      json_schema: { name: 'other', schema: json_schema.schema },
    });
    const properties = { by: null, at: { type: 'string' } };
    expect(await format({ json_schema: { schema: { properties, title: 'T' } } })).toEqual({
      type: 'json_schema',
      json_schema: {
        name: 'other',
        schema: {
          type: 'object',
          title: 'T',
          properties: { sum: { type: 'number' }, at: { type: 'string' } },
        },
      },
    });
    expect(await format({ type: 'text', json_schema: null })).toEqual({ type: 'text' });
  });

  test.each<[string, object | string, string]>([
    ['has a schema and says text', { type: 'text' }, 'response_format/json_schema'],
    ['has lost its schema', { json_schema: null }, 'response_format/json_schema'],
    ['has an unknown member', { colour: 'red' }, 'response_format/colour'],
    [
      'has a schema that is none',
      { json_schema: { schema: { type: 'number-ish' } } },
      'response_format/json_schema/schema',
    ],
    [
      'is nested too deep',
      `{"response_format":{"json_schema":{"schema":${'{"a":'.repeat(15_000)}1${'}'.repeat(15_000)}}}}`,
      'response_format/json_schema/schema',
    ],
  ])('are refused a patch whose result %s, by its field', async (_what, patch, field) => {
    const agent = await create(parameters);
    const { details } = expectFailure(
      await service.send(
        'PATCH',
        `/v1/agents/${agent}`,
        typeof patch === 'string' ? patch : { response_format: patch },
      ),
      'invalid_request',
    );
    expect(Object.keys(details!)).toContain(field);
    if ('type' in Object(patch)) expect(details![field]!.message).toContain('removed by null');
    expect((await service.get(`/v1/agents/${agent}`)).body.data.revision).toBe(0);
  });
});

describe('a schema that would not be recorded as sent', () => {
  const formatWith = (schema: string) =>
    `"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":${schema}}}`;
  const bodyOf = (format: string) =>
    `{"name":"One","instruction":"be one","model":"scripted",${format}}`;

  test.each([
    ['{"title":"\\ud800"}', '/title'],
    ['{"properties":{"\\udc00":{}}}', '/properties'],
    ['{"enum":[1e400,1]}', '/enum/0'],
  ])('is refused by its place, with and without a key: %s', async (schema, place) => {
    const path = `/response_format/json_schema/schema${place}`;
    const agent = await create();
    const format = formatWith(schema);
    const answers = [
      await service.post('/v1/agents', bodyOf(format)),
      await service.post('/v1/agents', bodyOf(format), { 'idempotency-key': schema }),
      await service.send('PUT', `/v1/agents/${agent}`, bodyOf(format)),
      await service.send('PATCH', `/v1/agents/${agent}`, `{${format}}`),
    ];
    for (const answer of answers)
      expect(expectFailure(answer, 'invalid_request')).toMatchObject({
        retry: 'never',
        details: { [path.slice(1)]: { path } },
      });
    expect((await service.get(`/v1/agents/${agent}`)).body.data.revision).toBe(0);
  });

  test('is refused in the check of a replay, with and without a key', async () => {
    const body = '{"checks":[{"json_schema":{"title":"\\ud800"}}]}';
    for (const headers of [{}, { 'idempotency-key': 'replay' }]) {
      const answer = await service.post('/v1/replays', body, headers);
      expect(expectFailure(answer, 'invalid_request').details).toMatchObject({
        'checks/0/json_schema/title': { path: '/checks/0/json_schema/title' },
      });
    }
  });
});
