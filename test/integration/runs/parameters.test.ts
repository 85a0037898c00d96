import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { LIMITS } from '../../../shared/limits.ts';
import { expectFailure } from '../../support/http/failures.ts';
import { closeRebuilt } from '../../support/http/rebuiltRequests.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ text: 'Hello.' }, { MODEL_MAX_RETRIES: '0' });
});
afterAll(() => closeRebuilt(service));

/** Members in an order that is not the alphabet's. */
const schema = {
  type: 'object',
  properties: { sum: { type: 'number' }, by: { type: 'string', pattern: '^[a-z]+$' } },
  required: ['sum'],
};
const format = (of: object = schema) => ({
  type: 'json_schema',
  json_schema: { name: 'answer', schema: of, strict: true },
});

const run = (agent: string, session_id?: string) =>
  service.post(`/v1/agents/${agent}/run`, { input: 'go', ...(session_id && { session_id }) });
const create = (changes: object) =>
  service.post('/v1/agents', { name: 'n', instruction: 'i', model: 'narrow', ...changes });
async function lastTurn() {
  const { session_id } = (await service.get('/v1/sessions?limit=1')).body.data[0];
  const { turns } = (await service.get(`/v1/sessions/${session_id}`)).body.data;
  return { session_id, turn: turns.at(-1) };
}

describe('the parameters of an agent', () => {
  test('are shown as they were given, and only where they were', async () => {
    const parameters = { temperature: 0.2, max_output_tokens: 40, response_format: format() };
    const agent = await service.createAgent(parameters);
    const { config } = (await service.get(`/v1/agents/${agent}`)).body.data;
    expect(config).toMatchObject(parameters);
    expect(JSON.stringify(config.response_format.json_schema.schema)).toBe(JSON.stringify(schema));
    const plain = (await service.get(`/v1/agents/${await service.createAgent()}`)).body.data;
    expect(Object.keys(plain.config)).toEqual(['agent_id', 'name', 'instruction', 'model']);
  });

  test('are in every request of a turn, and recorded so that it can be built again', async () => {
    const agent = await service.createAgent({
      temperature: 0,
      max_output_tokens: 40,
      response_format: format(),
      tool: 'calculator',
    });
    service.model.use([
      { tool_calls: [{ name: 'calculator', arguments: '{"expression":"1+1"}' }] },
      { text: '{"sum":2}' },
    ]);
    expect((await run(agent)).status).toBe(200);
    for (const request of service.model.requests.slice(-2))
      expect(request).toMatchObject({
        temperature: 0,
        max_completion_tokens: 40,
        response_format: format(),
      });
    const members = Object.keys(service.model.requests.at(-1)!);
    expect(members).toEqual(members.toSorted());
    const { session_id } = await lastTurn();
    const { data } = (await service.get(`/v1/sessions/${session_id}/events`)).body;
    const { settings } = data[1].data;
    expect(settings).toMatchObject({ temperature: 0, max_completion_tokens: 40 });
    expect(JSON.parse(settings.response_format.json_schema.schema.text)).toEqual(schema);
  });

  test.each([
    ['temperature', { temperature: 2.1 }],
    ['max_output_tokens', { max_output_tokens: 51 }],
    ['max_output_tokens', { max_output_tokens: 0 }],
    ['response_format', { response_format: { type: 'json_schema' } }],
    ['response_format', { response_format: { type: 'yaml' } }],
  ])('are refused where %s can not be: %j', async (field, changes) => {
    const { details } = expectFailure(await create(changes), 'invalid_request');
    expect(Object.keys(details!).some((name) => name.startsWith(field))).toBe(true);
  });

  test('keep all that was asked for the answer free of the prompt', async () => {
    const agent = await service.createAgent({ model: 'scripted', max_output_tokens: 999_990 });
    expectFailure(await run(agent), 'invalid_request');
  });
});

describe('a JSON Schema of a client', () => {
  const deep = (levels: number): object => (levels === 0 ? {} : { not: deep(levels - 1) });
  test.each<[string, object]>([
    ['refers to another place', { $ref: 'https://example.com/schema' }],
    ['is asynchronous', { $async: true }],
    ['is nested too deeply', deep(LIMITS.responseFormat.schemaDepth)],
    ['is too long', { description: 'x'.repeat(LIMITS.responseFormat.schemaBytes) }],
    ['is no schema', { type: 'number?' }],
    ['refers to what it does not hold', { $ref: '#/$defs/none' }],
    ['has a pattern that is none', { pattern: '(' }],
  ])('that %s is refused', async (_, of) => {
    const { details } = expectFailure(
      await create({ response_format: format(of) }),
      'invalid_request',
    );
    expect(Object.values(details!)[0]!.path).toBe('/response_format/json_schema/schema');
  });

  test('may refer to itself', async () => {
    const list = { type: 'object', properties: { next: { $ref: '#' }, $ref: { type: 'null' } } };
    expect((await create({ response_format: format(list) })).status).toBe(200);
  });
});

describe('an answer', () => {
  test.each([
    ['is not JSON', 'forty-two'],
    ['does not fit the schema (required)', '{"by":"me"}'],
    ['does not fit the schema (type)', '[]'],
  ])('that %s is model_error, and its text is kept', async (why, text) => {
    const agent = await service.createAgent({ response_format: format() });
    service.model.use({ text });
    expect(expectFailure(await run(agent), 'model_error').error).toBe(`The model's answer ${why}.`);
    const { turn, session_id } = await lastTurn();
    expect(turn).toMatchObject({ status: 'failed', output: text, error: { code: 'model_error' } });
    // It was no answer, so the model is not shown it.
    service.model.use({ text: '{"sum":1}' });
    expect((await run(agent, session_id)).body.data.output).toBe('{"sum":1}');
    expect(service.model.bodies.at(-1)).not.toContain(JSON.stringify(text).slice(1, -1));
  });

  test('of json_object is any object and nothing else', async () => {
    const agent = await service.createAgent({ response_format: { type: 'json_object' } });
    service.model.use([{ text: '{}' }, { text: '"{}"' }]);
    expect((await run(agent)).status).toBe(200);
    expectFailure(await run(agent), 'model_error');
  });

  test('that takes for ever to be checked ends in time, and holds nobody up', async () => {
    const agent = await service.createAgent({
      response_format: format({ properties: { by: { pattern: '^(a+)+$' } } }),
    });
    service.model.use({ text: JSON.stringify({ by: `${'a'.repeat(60)}!` }) });
    const running = run(agent);
    let slowest = 0;
    for (let probes = 0; probes < 20; probes += 1) {
      const began = performance.now();
      await service.get('/health/live');
      slowest = Math.max(slowest, performance.now() - began);
    }
    expect(expectFailure(await running, 'model_error').error).toContain('takes too long to check');
    expect(slowest).toBeLessThan(LIMITS.responseFormat.checkMs);
    service.model.use({ text: '{"sum":1}' });
    const other = await service.createAgent({ response_format: format() });
    expect((await run(other)).status).toBe(200);
  });
});
