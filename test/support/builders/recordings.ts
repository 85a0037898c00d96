import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { sha256 } from '../../../shared/eventlog/hashChain.ts';
import type { ChatRequest } from '../../../shared/sessions/turns/chat.ts';
import { startTestService, type TestService } from '../http/service.ts';
import type { Step } from '../fakes/scriptedModel.ts';

const TEXTS = ['plain words', 'ключ', '😀 "quoted" \\ \u2028', '\u0001\t\n', 'é\u0301', '漢字'];
const words = fc
  .array(fc.constantFrom(...TEXTS), { minLength: 1, maxLength: 12 })
  .map((parts) => parts.join(' '));
const change = fc.oneof(
  fc.record(
    {
      instruction: words,
      model: fc.constantFrom('first', 'plain'),
      tool: fc.constantFrom('calculator', 'calculator,clock', 'clock', null),
      temperature: fc.constantFrom(0, 0.1, null),
      max_output_tokens: fc.constantFrom(60, 90, null),
      compaction: fc.boolean(),
    },
    { requiredKeys: [] },
  ),
  fc.constant({}),
);

/** A turn of a recording: what is changed of the agent before it, and how its model behaves. */
export interface Played {
  change: object;
  input: string;
  rounds: number;
  /** `first`: the agent's own model is in trouble, so that a fallback answers; `all`: nobody does. */
  fails: 'none' | 'first' | 'all';
}

export const played: fc.Arbitrary<Played> = fc.record({
  change,
  input: words,
  rounds: fc.nat({ max: 3 }),
  fails: fc.constantFrom('none', 'none', 'none', 'first', 'all'),
});

const long = [...TEXTS, ...TEXTS].join(' ');
/** A session in which there is all that a recording can have. */
export const ALL_KINDS: Played[] = Array.from({ length: 14 }, (_, at) => ({
  change: at === 0 ? { tool: 'calculator,clock', compaction: true } : {},
  input: `${long} ${at}`,
  rounds: at % 4,
  fails: at === 5 ? 'all' : at % 3 === 1 ? 'first' : 'none',
}));

/** The same calls twice in a round, too: each has its own result. */
const CALLS = [
  { name: 'clock', arguments: '{}' },
  { name: 'calculator', arguments: '{"expression":"1+1"}' },
  { name: 'clock', arguments: '{}' },
  { name: 'ключ', arguments: 'not JSON 😀' },
];

const hashOf = (request: ChatRequest): string => sha256(JSON.stringify(request.messages));

/** A model that says the same to the same request, but for what is to fail. */
export function deterministic(
  request: ChatRequest,
  { rounds, fails }: Pick<Played, 'rounds' | 'fails'>,
): Step {
  if (fails === 'all' || (fails === 'first' && request.model === 'first')) return { status: 500 };
  const { messages, tools } = request;
  const hash = hashOf(request);
  if ((messages[0]!.content ?? '').includes('Sum it up')) return { text: `so far: ${hash} 😀` };
  const asked = messages.findLastIndex(({ role }) => role === 'user');
  const done = messages.slice(asked).filter(({ role }) => role === 'assistant').length;
  if (!tools || done >= rounds) return { text: `answer ${hash} ключ` };
  const tool_calls = CALLS.slice(0, done + 2).map((call, at) => ({ ...call, id: `${hash}_${at}` }));
  return { text: done === 0 ? `I look. ${hash}` : null, tool_calls };
}

/** How many rounds an input asks for: the model knows it from there, when it is asked again, too. */
const asInput = ({ input, rounds }: Played): string => `${input} /${rounds}`;
const roundsIn = ({ messages }: ChatRequest): number =>
  Number(messages.findLast(({ role }) => role === 'user')?.content?.at(-1) ?? 0);

/** Has the model answer as a replay needs it: the same as before, and nothing fails. */
export const answerAgain = ({ model }: TestService): void =>
  model.use((request) => deterministic(request, { rounds: roundsIn(request), fails: 'none' }));

/** A service with models whose contexts are narrow, so that sessions are soon summed up. */
export async function startRecorder(): Promise<TestService> {
  const service = await startTestService(undefined, { MODEL_MAX_RETRIES: '0' });
  const models = [
    { id: 'first', provider: 'a', context_window: 900, fallbacks: ['other'] },
    { id: 'other', provider: 'b', context_window: 4_000, max_output_tokens: 2_000 },
    { id: 'plain', provider: 'b', context_window: 700, max_output_tokens: 90 },
  ];
  const base_url = service.model.baseUrl;
  const file = join(service.folder, '..', 'narrow-models.json');
  const providers = { a: { base_url }, b: { base_url } };
  await writeFile(file, JSON.stringify({ providers, models }));
  const env = { MODELS_FILE: file, MODEL_CIRCUIT_FAILURES: '1000' };
  await service.restart(env);
  const again = { ...service, restart: () => service.restart(env) };
  return Object.defineProperty(again, 'url', { get: () => service.url });
}

/** Records a session of an agent of its own, turn by turn; resolves with both ids. */
export async function recordSession(
  service: TestService,
  turns: readonly Played[],
): Promise<{ agent: string; session: string }> {
  const agent = await service.createAgent({ model: 'first', compaction: true });
  let session: string | undefined;
  for (const turn of turns) {
    await service.send('PATCH', `/v1/agents/${agent}`, turn.change);
    service.model.use((request) => deterministic(request, turn));
    const body = { input: asInput(turn), ...(session && { session_id: session }) };
    const { body: answer } = await service.post(`/v1/agents/${agent}/run`, body);
    session ??= answer.data?.session_id as string | undefined;
    session ??= (await service.get(`/v1/sessions?agent_id=${agent}`)).body.data[0]?.session_id;
  }
  return { agent, session: session! };
}
