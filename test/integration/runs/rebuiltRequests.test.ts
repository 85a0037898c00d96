import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { ChatRequest } from '../../../shared/sessions/turns/chat.ts';
import { canonicalJson } from '../../../shared/eventlog/canonicalJson.ts';
import { sha256 } from '../../../shared/eventlog/hashChain.ts';
import { rebuiltRequests } from '../../support/http/rebuiltRequests.ts';
import type { Step } from '../../support/fakes/scriptedModel.ts';
import { rebuiltByPython } from '../../support/processes/recipes/rebuildRequests.ts';
import { allEvents, openEvents } from '../../support/http/sse.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';

let service: TestService;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'turnlog-rebuilt-'));
  service = await startTestService(undefined, { MODEL_MAX_RETRIES: '0' });
  const models = [
    { id: 'first', provider: 'a', context_window: 900, fallbacks: ['other'] },
    { id: 'other', provider: 'b', context_window: 4_000, max_output_tokens: 2_000 },
    { id: 'plain', provider: 'b', context_window: 700, max_output_tokens: 90 },
  ];
  const base_url = service.model.baseUrl;
  await writeFile(
    join(folder, 'models.json'),
    JSON.stringify({ providers: { a: { base_url }, b: { base_url } }, models }),
  );
  await service.restart({
    MODELS_FILE: join(folder, 'models.json'),
    MODEL_CIRCUIT_FAILURES: '1000',
  });
});
afterAll(async () => {
  await service.close();
  await rm(folder, { recursive: true });
});

const TEXTS = ['plain words', 'ключ', '😀 "quoted" \\ \u2028', '\u0001\t\n', 'é\u0301', '漢字'];
const text = fc.array(fc.constantFrom(...TEXTS), { minLength: 1, maxLength: 12 });
const words = text.map((parts) => parts.join(' '));
/** Members in an order that is not the alphabet's. */
const schema = {
  type: 'object',
  properties: { sum: { type: 'string', description: 'ключ 😀' }, by: { enum: [1e-7, 1e21] } },
  required: ['sum'],
};
const change = fc.oneof(
  fc.record(
    {
      instruction: words,
      model: fc.constantFrom('first', 'plain'),
      tool: fc.constantFrom('calculator', 'calculator,clock', null),
      temperature: fc.constantFrom(0, 0.1, 1, null),
      max_output_tokens: fc.constantFrom(1, 60, 90, null),
      response_format: fc.constantFrom(
        null,
        // A patch merges objects: the schema of an earlier format has to go.
        { type: 'json_object', json_schema: null },
        { type: 'json_schema', json_schema: { strict: true, schema, name: 'b' } },
      ),
    },
    { requiredKeys: [] },
  ),
  fc.constant({}),
);
const turn = fc.record({
  change,
  input: words,
  streamed: fc.boolean(),
  rounds: fc.nat({ max: 2 }),
  fails: fc.boolean(),
  said: words,
});

const CALLS = [
  { name: 'calculator', arguments: '{"expression":"1+1"}' },
  { name: 'clock', arguments: '{ }' },
  { name: 'ключ', arguments: 'not JSON 😀' },
];

const isSummary = ({ messages }: ChatRequest): boolean =>
  (messages[0]!.content ?? '').includes('Sum it up');

/** As sent, except for what asks for a stream. Only the order of a schema's members matters. */
function bytesOf(body: string): string {
  const { stream: _, stream_options: __, response_format, ...request } = JSON.parse(body);
  const sorted = JSON.parse(canonicalJson(request));
  return JSON.stringify({ ...sorted, ...(response_format && { response_format }) });
}

/** Runs the agent to its end, with or without a stream. */
async function run(agent: string, body: object, streamed: boolean): Promise<void> {
  const path = `/v1/agents/${agent}/run`;
  if (!streamed) return expect((await service.post(path, body)).status).toBe(200);
  const headers = { authorization: `Bearer ${service.key}`, 'content-type': 'application/json' };
  const init = { method: 'POST', headers, body: JSON.stringify(body) };
  const heard = await allEvents(await openEvents(`${service.url}${path}`, init));
  expect(heard.at(-1)!.event).toBe('turn.completed');
}

const long = TEXTS.concat(TEXTS).join(' ');
/** A session in which there is all that a request can have. */
const ALL_KINDS = Array.from({ length: 9 }, (_, at) => ({
  change:
    at === 0
      ? {
          tool: 'calculator',
          temperature: 0.1,
          response_format: {
            type: 'json_schema',
            json_schema: { strict: true, schema, name: 'b' },
          },
        }
      : {},
  input: long,
  streamed: at % 3 === 0,
  rounds: at % 3,
  fails: at > 0,
  said: long,
}));

const kinds = { calls: 0, fallbacks: 0, summaries: 0, streamed: 0, rounds: 0, formats: 0 };

test('every request that was answered can be built again from events alone, to the byte', async () => {
  const turns = fc.array(turn, { minLength: 8, maxLength: 14 });
  await fc.assert(
    fc.asyncProperty(turns, async (steps) => {
      const agent = await service.createAgent({ model: 'first', compaction: true });
      const answered: string[] = [];
      let session_id: string | undefined;
      for (const { change: patch, input, streamed, rounds, fails, said } of steps) {
        const changed = await service.send('PATCH', `/v1/agents/${agent}`, patch);
        expect(changed.status).toBe(200);
        const first = service.model.bodies.length;
        const kept: boolean[] = [];
        let round = 0;
        service.model.use((request): Step => {
          const refused = fails && request.model === 'first';
          kept.push(!refused);
          if (refused) return { status: 500 };
          if (isSummary(request)) return { text: `so far: ${said}` };
          round += 1;
          if (request.tools && round <= rounds)
            return { text: round === 1 ? said : null, tool_calls: CALLS.slice(0, round + 1) };
          return { text: JSON.stringify({ sum: said }) };
        });
        await run(agent, { input, ...(session_id && { session_id }) }, streamed);
        session_id ??= (await service.get('/v1/sessions?limit=1')).body.data[0]
          .session_id as string;
        const bodies = service.model.bodies.slice(first);
        if (bodies.some((body) => JSON.parse(body).stream)) kinds.streamed += 1;
        answered.push(...bodies.filter((_, at) => kept[at]));
      }
      const requests = await rebuiltRequests(service, session_id!);
      expect(requests.map(({ request }) => bytesOf(JSON.stringify(request)))).toEqual(
        answered.map(bytesOf),
      );
      const { code, stdout } = await rebuiltByPython(service, session_id!);
      expect([code, stdout.split('\n').at(-2)]).toEqual([
        0,
        `${requests.length} requests, 0 of them are not what was sent`,
      ]);
      for (const [at, { request, recorded_sha256 }] of requests.entries()) {
        expect(sha256(canonicalJson(JSON.parse(bytesOf(answered[at]!))))).toBe(recorded_sha256);
        kinds.calls += 1;
        if (request.model === 'other') kinds.fallbacks += 1;
        if (isSummary(request)) {
          kinds.summaries += 1;
          expect(request.max_completion_tokens ?? request.max_tokens).toBeLessThanOrEqual(1_024);
        }
        if (request.messages.at(-1)!.role === 'tool') kinds.rounds += 1;
        if (request.response_format) kinds.formats += 1;
      }
    }),
    { numRuns: 3, examples: [[ALL_KINDS]], endOnFailure: true },
  );
  expect(Object.entries(kinds).filter(([, count]) => count === 0)).toEqual([]);
}, 120_000);
