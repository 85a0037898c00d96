import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { setLimits } from '../../../shared/accounts/commands.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { run } from '../../support/http/damagedSession.ts';
import { expectFailure } from '../../support/http/failures.ts';
import {
  apiClient,
  startTestService,
  TEST_KEY,
  type Client,
  type TestService,
} from '../../support/http/service.ts';
import {
  asOperator,
  clientWith,
  eventually,
  newKey,
  type IssuedKey,
} from '../../support/processes/operator.ts';

/** A model that answers when it is let, each request in the order of arrival. */
function heldModel() {
  let open = false;
  const held: (() => void)[] = [];
  return {
    script: () =>
      new Promise<{ text: string }>((resolve) => {
        const answer = (): void => resolve({ text: 'Done.' });
        if (open) answer();
        else held.push(answer);
      }),
    answerOne: () => held.shift()?.(),
    hold: () => (open = false),
    release() {
      open = true;
      for (const answer of held.splice(0)) answer();
    },
  };
}

const model = heldModel();
let service: TestService;
let otherKey: IssuedKey;
let agent: string;
let otherAgent: string;

beforeAll(async () => {
  service = await startTestService(model.script, {
    MAX_RUNS: '4',
    MAX_PROMPT_BYTES: String(4 * 1024 * 1024),
    RUN_WAIT_MS: '60000',
    SHUTDOWN_GRACE_MS: '0',
  });
  otherKey = await newKey(service.folder);
  const { post } = await clientWith(service.url, otherKey);
  agent = await service.createAgent();
  const body = { name: 'B', instruction: 'Be brief.', model: 'scripted' };
  otherAgent = (await post('/v1/agents', body)).body.data.agent_id;
});
afterAll(() => service.close());
afterEach(() => void model.hold());

/** The other account's; a restart changes where the service listens. */
const other = (): Client => apiClient(service.url, otherKey.api_key);

const health = async () => (await service.get('/health/ready')).body.data;
const untilRuns = (in_flight: number, waiting: number) =>
  eventually(
    health,
    ({ runs_in_flight, runs_waiting }) => runs_in_flight === in_flight && runs_waiting === waiting,
  );
const several = (count: number, client: Client = service, id = agent) =>
  Array.from({ length: count }, () => client.post(`/v1/agents/${id}/run`, { input: 'x' }));

describe('runs in flight', () => {
  test('an account has its share of them and waits beyond, and another one is let in at once', async () => {
    const mine = several(5);
    await untilRuns(2, 3);
    const theirs = several(1, other(), otherAgent);
    await untilRuns(3, 3);
    model.release();
    for (const { status } of await Promise.all([...mine, ...theirs])) expect(status).toBe(200);
    await untilRuns(0, 0);
  });

  test('who has waited for too long is told whose room was used up, and when to come again', async () => {
    await service.restart({ RUN_WAIT_MS: '300' });
    const mine = several(3);
    const refused = await Promise.race(mine);
    expectFailure(refused, 'rate_limited');
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    const theirs = several(1, other(), otherAgent);
    await untilRuns(3, 0);
    const newcomer = async () => {
      const client = await clientWith(service.url, await newKey(service.folder));
      const body = { name: 'C', instruction: 'Be brief.', model: 'scripted' };
      const made = await client.post('/v1/agents', body);
      return () => several(1, client, made.body.data.agent_id);
    };
    theirs.push(...(await newcomer())());
    await untilRuns(4, 0);
    const [overloaded] = await Promise.all((await newcomer())());
    expectFailure(overloaded!, 'overloaded');
    expect(Number(overloaded!.headers.get('retry-after'))).toBeGreaterThan(0);
    model.release();
    await Promise.all([...mine, ...theirs]);
    await service.restart();
  });

  test('their inputs are bounded in bytes, and those that wait as well', async () => {
    const input = 'x'.repeat(500_000);
    const large = Array.from({ length: 12 }, () => run(service, agent, input));
    const refused = await Promise.race(large);
    expectFailure(refused, 'rate_limited');
    const ready = await health();
    expect((ready.runs_in_flight + ready.runs_waiting) * input.length).toBeLessThanOrEqual(
      4 * 1024 * 1024,
    );
    const theirs = several(1, other(), otherAgent);
    model.release();
    expect((await Promise.all(theirs))[0]!.status).toBe(200);
    await Promise.all(large);
  });

  test('one whose client leaves before it has begun is given up, and any other goes on', async () => {
    const sessions = async () =>
      (await service.get(`/v1/sessions?limit=1000`)).body.data.length as number;
    const before = await sessions();
    const leaving = new AbortController();
    const left = Array.from({ length: 5 }, () =>
      fetch(`${service.url}/v1/agents/${agent}/run`, {
        method: 'POST',
        headers: { 'x-api-key': TEST_KEY, 'content-type': 'application/json' },
        body: '{"input":"x"}',
        signal: leaving.signal,
      }),
    );
    await untilRuns(2, 3);
    leaving.abort();
    await Promise.allSettled(left);
    await untilRuns(2, 0);
    model.release();
    await untilRuns(0, 0);
    expect(await sessions()).toBe(before + 2);
  });

  test('a shut-down interrupts those that have begun, and refuses those that wait', async () => {
    const mine = several(4);
    await untilRuns(2, 2);
    await service.restart();
    const replies = await Promise.all(mine);
    const begun = replies.filter(({ body }) => body.code === 'turn_interrupted');
    expect(begun).toHaveLength(2);
    for (const reply of begun) expectFailure(reply, 'turn_interrupted');
    for (const reply of replies)
      if (!begun.includes(reply)) expectFailure(reply, 'store_unavailable');
  });
});

describe('runs on a session', () => {
  test('of another account are refused while it is busy, and never come before its own', async () => {
    model.release();
    const session = (await run(service, agent, 'first')).body.data.session_id as string;
    model.hold();
    const running = run(service, agent, 'second', session);
    await untilRuns(1, 0);
    const foreign = Array.from({ length: 30 }, () =>
      other().post(`/v1/agents/${otherAgent}/run`, { input: 'x', session_id: session }),
    );
    for (const reply of await Promise.all(foreign)) expectFailure(reply, 'session_not_found');
    const own = await service.createAgent();
    expectFailure(await run(service, own, 'x', session), 'session_not_found');
    model.release();
    expect((await running).status).toBe(200);
  });

  test('of another account are refused too when nobody remembers the session', async () => {
    model.release();
    const session = (await run(service, agent, 'first')).body.data.session_id as string;
    await service.restart();
    const body = { input: 'x', session_id: session };
    expectFailure(await other().post(`/v1/agents/${otherAgent}/run`, body), 'session_not_found');
    expect((await run(service, agent, 'again', session)).status).toBe(200);
  });

  test('beyond a line of a bounded length are answered session_busy at once', async () => {
    model.release();
    const session = (await run(service, agent, 'first')).body.data.session_id as string;
    model.hold();
    const runs = Array.from({ length: LIMITS.run.waitingOfSession + 2 }, () =>
      run(service, agent, 'more', session),
    );
    expectFailure(await Promise.race(runs), 'session_busy');
    model.release();
    const statuses = (await Promise.all(runs)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(statuses.length - 1);
  });
});

describe('requests per second', () => {
  test('are told with every answer, and bounded by what was set for the account', async () => {
    const free = await other().get('/v1/models');
    expect(free.headers.get('ratelimit-policy')).toBe('"key";q=20000;w=1');
    expect(free.headers.get('ratelimit')).toMatch(/^"key";r=\d+;t=1$/);
    const narrow = await newKey(service.folder, { scopes: ['sessions:read'] });
    const lacking = await (await clientWith(service.url, narrow)).get('/v1/agents');
    expectFailure(lacking, 'forbidden');
    expect(lacking.headers.get('ratelimit')).toMatch(/^"key";r=\d+;t=1$/);
    const actor = { account_id: otherKey.account_id, key_id: 'operator', request_id: 'test' };
    await asOperator(service.folder, (operator) =>
      setLimits(operator, actor, { requests_per_second: 3 }),
    );
    await eventually(
      () => other().get('/v1/models'),
      ({ headers }) => headers.get('ratelimit-policy') === '"key";q=3;w=1',
    );
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => other().post('/v1/agents', '{"not":')),
    );
    const limited = replies.filter(({ status }) => status === 429);
    expect(limited.length).toBeGreaterThan(0);
    for (const reply of limited) {
      expectFailure(reply, 'rate_limited');
      expect(reply.headers.get('retry-after')).toBe('1');
      expect(reply.headers.get('ratelimit')).toBe('"key";r=0;t=1');
    }
    expect((await service.get('/v1/models')).status).toBe(200);
  });
});

test('an input that its model has no room for is refused, and holds nobody up meanwhile', async () => {
  const narrow = await service.createAgent({ model: 'narrow' });
  const letters = Array.from({ length: 120_000 }, () => Math.random().toString(36).slice(2, 6));
  expectFailure(await run(service, narrow, letters.join('')), 'invalid_request');
});
