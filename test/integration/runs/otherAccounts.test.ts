import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { ErrorCode } from '../../../shared/lib/errors/turnlogError.ts';
import type { ChatRequest } from '../../../shared/sessions/turns/chat.ts';
import type { Step } from '../../support/fakes/scriptedModel.ts';
import { expectFailure } from '../../support/http/failures.ts';
import { startTestService, type Reply, type TestService } from '../../support/http/service.ts';
import { clientWith, newKey } from '../../support/processes/operator.ts';

let service: TestService;
const startWith = (env: Record<string, string>): void => {
  beforeAll(async () => {
    service = await startTestService({ text: 'Done.' }, env);
  });
  afterAll(() => service.close());
};

type Run = (input: string) => Promise<Reply>;

/** Sends runs of a new account. */
async function newAccount(): Promise<Run> {
  const client = await clientWith(service.url, await newKey(service.folder));
  const body = { name: 'A', instruction: 'Be brief.', model: 'scripted' };
  const { agent_id } = (await client.post('/v1/agents', body)).body.data;
  return (input) => client.post(`/v1/agents/${agent_id}/run`, { input });
}

/** Only runs with the input `harm` come to this. */
const harmWith = (step: Step | Promise<Step>): void =>
  service.model.use(({ messages }: ChatRequest) =>
    messages.at(-1)?.content === 'harm' ? step : { text: 'Done.' },
  );

describe('the circuit to a provider', () => {
  const FAILURES = 3;
  startWith({
    MODEL_MAX_RETRIES: '0',
    MODEL_ATTEMPT_TIMEOUT_MS: '300',
    MODEL_CIRCUIT_FAILURES: String(FAILURES),
    MODEL_CIRCUIT_OPEN_MS: '60000',
  });
  beforeEach(() => service.model.use({ text: 'Done.' }));

  test.each<[string, Step, ErrorCode]>([
    ['fail', { status: 500 }, 'model_error'],
    ['time out', { fault: 'never_answer' }, 'model_timeout'],
  ])('opens for an account whose runs %s, and for no other', async (_, step, code) => {
    const [harmful, other] = [await newAccount(), await newAccount()];
    harmWith(step);
    for (let runs = 0; runs < FAILURES; runs += 1) expectFailure(await harmful('harm'), code);
    expectFailure(await harmful('harm'), 'model_overloaded');
    expect((await other('mine')).status).toBe(200);
    expectFailure(await harmful('harm'), 'model_overloaded');
    expect((await service.get('/health/ready')).body.data).not.toHaveProperty('open_circuits');
  });

  test('opens for all when the runs of three accounts fail, not of two', async () => {
    const [a, b, c, other] = await Promise.all([1, 2, 3, 4].map(newAccount));
    const fail = async (...runs: (Run | undefined)[]) => {
      for (const run of runs) expectFailure(await run!('harm'), 'model_error');
    };
    harmWith({ status: 500 });
    await fail(a, b, a);
    expect((await other!('mine')).status).toBe(200);
    await fail(a, b, c);
    const asked = service.model.requests.length;
    expectFailure(await other!('mine'), 'model_overloaded');
    expect(service.model.requests).toHaveLength(asked);
    const { open_circuits } = (await service.get('/health/ready')).body.data;
    expect(open_circuits).toEqual(['script']);
  });
});

describe('the connections to a provider', () => {
  /** More than all accounts could have once. */
  const SLOW_RUNS = 300;
  startWith({});

  test('are left to an account, however many slow runs another one has', async () => {
    const [harmful, other] = [await newAccount(), await newAccount()];
    const slow = Promise.withResolvers<Step>();
    harmWith(slow.promise);
    const slowRuns = Array.from({ length: SLOW_RUNS }, () => harmful('harm'));
    await service.model.received(SLOW_RUNS);
    expect((await other('mine')).status).toBe(200);
    slow.resolve({ text: 'Done.' });
    for (const { status } of await Promise.all(slowRuns)) expect(status).toBe(200);
  });
});
