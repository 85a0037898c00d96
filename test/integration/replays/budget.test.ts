import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { ChatRequest } from '../../../shared/sessions/turns/chat.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';
import { comparisonsIn, endOf, startReplayOf } from '../../support/builders/replays.ts';

const usage = { prompt_tokens: 60, completion_tokens: 40, total_tokens: 100 };
const CALL = { name: 'calculator', arguments: '{"expression":"1+1"}' };
const isAsked = ({ messages }: ChatRequest): boolean => messages.at(-1)!.role === 'user';

let service: TestService;
beforeAll(async () => {
  service = await startTestService(undefined, {
    MODEL_MAX_RETRIES: '0',
    MODEL_CIRCUIT_FAILURES: '1000',
  });
}, 120_000);
afterAll(() => service.close());

/** A session of two turns, each of which calls a tool. */
async function recorded(): Promise<string> {
  service.model.use((request) =>
    isAsked(request) ? { tool_calls: [CALL], usage } : { text: 'Two.', usage },
  );
  const agent = await service.createAgent({ tool: 'calculator' });
  const path = `/v1/agents/${agent}/run`;
  const { session_id } = (await service.post(path, { input: '1+1?' })).body.data;
  await service.post(path, { input: 'And again?', session_id });
  return session_id as string;
}

test('tokens of tries that failed count to the budget, and no further try is made once it is used', async () => {
  const session = await recorded();
  const before = service.model.requests.length;
  service.model.use((request) =>
    isAsked(request) ? { tool_calls: [CALL], usage } : { status: 503 },
  );
  const id = await startReplayOf(service.folder, { sessions: [session], budget_tokens: 250 });
  const told = await endOf(service.folder, id);
  expect(service.model.requests.slice(before).filter(isAsked)).toHaveLength(3);
  expect(comparisonsIn(told)).toMatchObject([
    {
      turn: 1,
      outcome: 'failed',
      code: 'model_overloaded',
      replayed: { tokens: { total: 100 } },
      other_tokens: 200,
    },
  ]);
  expect(told.state).toMatchObject({ tokens: 300 });
  expect(told.events.at(-1)!.data).toEqual({ status: 'budget_exhausted' });
  const { sums } = (await service.get(`/v1/replays/${id}`)).body.data;
  expect(sums).toMatchObject({ other_tokens: 200, replayed: { tokens: { total: 100 } } });
}, 120_000);

test('no judge is asked once the tokens are used, and the check says so', async () => {
  const session = await recorded();
  const judge = (criteria: string) => ({ judge: { model: 'scripted', criteria } });
  const checks = JSON.stringify([judge('first'), { equals: 'Two.' }, judge('second')]);
  const before = service.model.requests.length;
  service.model.use((request) => {
    if (request.messages[0]!.content!.includes('You judge')) return { text: 'PASS: Yes.', usage };
    return isAsked(request) ? { tool_calls: [CALL], usage } : { text: 'Two.', usage };
  });
  const id = await startReplayOf(service.folder, {
    sessions: [session],
    budget_tokens: 300,
    checks,
  });
  const told = await endOf(service.folder, id);
  // Two calls of the turn, and one judge.
  expect(service.model.requests.length - before).toBe(3);
  const [compared, ...others] = comparisonsIn(told);
  const made = compared!.checks;
  expect(others).toEqual([]);
  expect(made).toMatchObject([{ check: 0, passed: true }, { check: 1, passed: true }, {}]);
  expect(made[2]).toEqual({ check: 2, passed: false, code: 'budget_exhausted' });
  expect(told.events.at(-1)!.data).toEqual({ status: 'budget_exhausted' });
}, 120_000);

test('a provider that reports a usage of zeros is charged what the service counts', async () => {
  const zeros = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
  service.model.use({ text: 'Two.', usage: zeros });
  const agent = await service.createAgent();
  const path = `/v1/agents/${agent}/run`;
  const { session_id } = (await service.post(path, { input: '1+1?' })).body.data;
  await service.post(path, { input: 'And again?', session_id });
  const id = await startReplayOf(service.folder, { sessions: [session_id], budget_tokens: 1 });
  const told = await endOf(service.folder, id);
  expect(comparisonsIn(told)).toHaveLength(1);
  expect(told.state).toHaveProperty('tokens');
  expect(told.state).not.toMatchObject({ tokens: 0 });
  expect(told.events.at(-1)!.data).toEqual({ status: 'budget_exhausted' });
}, 120_000);
