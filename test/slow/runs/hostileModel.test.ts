import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { registeredResources } from '../../../shared/lib/concurrency/resources.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { expectFailure } from '../../support/http/failures.ts';
import { closeRebuilt } from '../../support/http/rebuiltRequests.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ text: 'Hello.' }, { MODEL_MAX_RETRIES: '0' });
});
afterAll(() => closeRebuilt(service));

const sum = { name: 'calculator', arguments: '{"expression":"1+1"}' };
const calls = (count: number, call = sum) => Array.from({ length: count }, () => call);

const run = (agent: string) => service.post(`/v1/agents/${agent}/run`, { input: 'go' });
/** The only turn of the newest session, and the types of its events. */
async function lastTurn() {
  const { session_id } = (await service.get('/v1/sessions?limit=1')).body.data[0];
  const { turns } = (await service.get(`/v1/sessions/${session_id}`)).body.data;
  const events = (await service.get(`/v1/sessions/${session_id}/events?limit=1000`)).body.data;
  return { turn: turns[0], types: events.map(({ type }: { type: string }) => type) as string[] };
}

describe('tool calls', () => {
  test('of one answer are all made, as many as a turn may have', async () => {
    const agent = await service.createAgent({ tool: 'calculator' });
    service.model.use([{ tool_calls: calls(LIMITS.run.toolCalls) }, { text: 'Done.' }]);
    expect((await run(agent)).body.data.output).toBe('Done.');
    expect((await lastTurn()).turn.tool_calls.length).toBe(LIMITS.run.toolCalls);
  });

  test.each([
    ['of an agent without a tool', {}],
    ['of an agent with one', { tool: 'calculator' }],
  ])('by the thousand %s end the run at once, and none is recorded', async (_, changes) => {
    const agent = await service.createAgent(changes);
    service.model.use({ tool_calls: calls(1_500) });
    expect(expectFailure(await run(agent), 'tool_error').error).toContain('128');
    expect((await lastTurn()).types).toEqual([
      'session.started.v1',
      'session.turn_started.v1',
      'session.turn_failed.v1',
    ]);
  });

  test('round after round have the same bound together', async () => {
    const agent = await service.createAgent();
    const perRound = LIMITS.run.toolCalls / 2;
    service.model.use({ tool_calls: calls(perRound, { name: 'none', arguments: '' }) });
    expectFailure(await run(agent), 'tool_error');
    expect((await lastTurn()).turn.tool_calls.length).toBe(2 * perRound);
  });

  test('that say too much have a bound in bytes', async () => {
    const agent = await service.createAgent({ tool: 'calculator' });
    const long = { name: 'calculator', arguments: 'x'.repeat(LIMITS.model.argumentsChars) };
    service.model.use({ tool_calls: calls(4, long) });
    expectFailure(await run(agent), 'tool_error');
    const { turn } = await lastTurn();
    // Seven would fit, but no call of an answer is made if all of them do not.
    expect(turn.tool_calls.length).toBe(4);
  });

  test('that take an event beyond its size are model_error, and the turn is closed', async () => {
    const agent = await service.createAgent();
    const name = 'f';
    // Four bytes each, once they stand in a box.
    const huge = '€'.repeat(LIMITS.model.argumentsChars);
    service.model.use({ tool_calls: [{ name, arguments: huge }] });
    expect(expectFailure(await run(agent), 'model_error').error).toContain('more than can be');
    expect((await lastTurn()).turn).toMatchObject({ status: 'failed', tool_calls: [] });
  });
});

describe('tool_used', () => {
  const none = { name: 'no_such_function', arguments: '{}' };

  test('is the first function that the agent has', async () => {
    const agent = await service.createAgent({ tool: 'calculator' });
    service.model.use([{ tool_calls: [none, sum] }, { text: 'Done.' }]);
    expect((await run(agent)).body.data.metadata.tool_used).toBe('calculator');
    expect((await lastTurn()).turn.tool_used).toBe('calculator');
  });

  test.each([
    ['has another tool', { tool: 'clock' }],
    ['has none', {}],
  ])('is empty where the agent %s, also when the run fails', async (_, changes) => {
    const agent = await service.createAgent(changes);
    service.model.use([{ tool_calls: [sum] }, { text: 'Done.' }]);
    expect((await run(agent)).body.data.metadata.tool_used).toBe('');
    expect((await lastTurn()).turn.tool_used).toBe('');
    service.model.use([{ tool_calls: [sum] }, { status: 500 }]);
    expectFailure(await run(agent), 'model_error');
    expect((await lastTurn()).turn).toMatchObject({ tool_used: '', tool_calls: [{}] });
  });
});

describe('finish_reason', () => {
  test.each(['length', 'content_filter', 'a_word_of_its_own'])(
    'tells an answer that ended with %s from a whole one',
    async (finish_reason) => {
      const agent = await service.createAgent();
      service.model.use({ text: 'The answer is', finish_reason });
      const { status, body } = await run(agent);
      expect([status, body.data.output]).toEqual([200, 'The answer is']);
      expect(body.data.metadata.finish_reason).toBe(finish_reason);
      expect((await lastTurn()).turn.finish_reason).toBe(finish_reason);
    },
  );

  test('is null of a turn without an answer', async () => {
    const agent = await service.createAgent();
    service.model.use({ text: '', finish_reason: 'content_filter' });
    expect(expectFailure(await run(agent), 'model_error').error).toContain('content filter');
    expect((await lastTurn()).turn).toMatchObject({ status: 'failed', finish_reason: null });
  });
});

test("a provider's words reach neither the client nor the transcript nor the events", async () => {
  const agent = await service.createAgent();
  service.model.use({ status: 400, body: { error: { message: 'Their very own words.' } } });
  const reply = await run(agent);
  expectFailure(reply, 'model_error');
  const { session_id } = (await service.get('/v1/sessions?limit=1')).body.data[0];
  const shown = [
    reply.body,
    (await service.get(`/v1/sessions/${session_id}`)).body,
    (await service.get(`/v1/sessions/${session_id}/events`)).body,
  ];
  expect(JSON.stringify(shown)).not.toContain('very own');
});

test('an answer counts in memory until its turn is recorded', async () => {
  const [, answers] = registeredResources().find(([name]) => name === 'memory_model_answers')!;
  const used = (): number => answers.usage().bytes!.used;
  const agent = await service.createAgent();
  service.model.use({ text: 'Done.', usage: null });
  const uses = new Set<number>();
  const over = new AbortController();
  const running = run(agent).finally(() => over.abort());
  while (!over.signal.aborted) {
    uses.add(used());
    await setImmediate();
  }
  expect((await running).body.data.output).toBe('Done.');
  expect(Math.max(...uses)).toBeGreaterThan('Done.'.length);
  expect(used()).toBe(0);
});
