import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { setLimits } from '../../../shared/accounts/commands.ts';
import type { AccountLimits } from '../../../shared/accounts/events.ts';
import type { QuotaName } from '../../../shared/storage/quotaRules.ts';
import { expectFailure } from '../../support/http/failures.ts';
import {
  apiClient,
  startTestService,
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

/** A model that answers when it is let. */
function heldModel() {
  let held: (() => void)[] | undefined;
  return {
    script: () =>
      new Promise<{ text: string }>((resolve) => {
        const answer = (): void => resolve({ text: 'Done.' });
        if (held) held.push(answer);
        else answer();
      }),
    hold: () => void (held = []),
    release() {
      held?.forEach((answer) => answer());
      held = undefined;
    },
  };
}

const model = heldModel();
let service: TestService;
let issued: IssuedKey;
beforeAll(async () => {
  service = await startTestService(model.script, { AUDIT_READS: 'none', SHUTDOWN_GRACE_MS: '0' });
  issued = await newKey(service.folder);
  await clientWith(service.url, issued);
});
afterAll(() => service.close());

/** The account with quotas; a restart changes where the service listens. */
const mine = (): Client => apiClient(service.url, issued.api_key);
const AGENT = { name: 'A', instruction: 'Be brief.', model: 'scripted' };
const create = (client = mine(), headers: Record<string, string> = {}) =>
  client.post('/v1/agents', AGENT, headers);
const run = (agent: string, session_id?: string) =>
  mine().post(`/v1/agents/${agent}/run`, { input: 'x', ...(session_id && { session_id }) });
const storage = async () => (await mine().get('/v1/usage/storage')).body.data;
const usedOf = async (name: QuotaName): Promise<number> => (await storage()).quotas[name].used;

/** Sets limits of the account and waits until the service obeys them. */
async function limit(limits: AccountLimits): Promise<void> {
  const { account_id } = issued;
  const actor = { account_id, key_id: 'operator', request_id: 'test' };
  await asOperator(service.folder, (operator) => setLimits(operator, actor, limits));
  const [[name, value]] = Object.entries(limits) as [[QuotaName, number]];
  await eventually(storage, ({ quotas }) => quotas[name].limit === (value || null));
}
const NONE = { events_per_day: 0, bytes_per_day: 0, events: 0, bytes: 0 };

describe('an account at its quota', () => {
  test('begins nothing new, and ends, erases and reads all that it has; others are served', async () => {
    // A tenth of the quota is for requests that cancel.
    await Promise.all(Array.from({ length: 30 }, () => create()));
    const kept = (await create()).body.data.agent_id as string;
    const session = (await run(kept)).body.data.session_id as string;
    const unneeded = (await create()).body.data.agent_id as string;
    model.hold();
    const open = run(kept, session);
    const other = run(kept);
    await eventually(
      async () => (await service.get('/health/ready')).body.data.runs_in_flight,
      (runs) => runs === 2,
    );
    await limit({ events_per_day: await usedOf('events_per_day') });

    const refused = await create();
    expect(expectFailure(refused, 'quota_exceeded').error).toMatch(/`events_per_day`.* resets at/);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expectFailure(await run(unneeded), 'quota_exceeded');
    expectFailure(
      await mine().send('PATCH', `/v1/agents/${kept}`, { name: 'B' }),
      'quota_exceeded',
    );
    expectFailure(
      await mine().post(`/v1/sessions/${session}/fork`, { at_turn: 1 }),
      'quota_exceeded',
    );
    expect((await service.post('/v1/agents', AGENT)).status).toBe(200);

    const cancelled = await mine().post(
      `/v1/sessions/${session}/cancel`,
      {},
      { 'idempotency-key': 'stop' },
    );
    expect(cancelled.body.data).toMatchObject({ status: 'interrupted', cancelled: true });
    await open;
    model.release();
    const ended = await other;
    expect(ended.status).toBe(200);
    expect((await mine().get(`/v1/sessions/${ended.body.data.session_id}`)).status).toBe(200);
    expect((await mine().get(`/v1/sessions/${session}/events`)).status).toBe(200);
    expect((await mine().send('DELETE', `/v1/agents/${unneeded}`, '')).status).toBe(200);
    expect((await mine().send('DELETE', `/v1/sessions/${session}`, '')).status).toBe(200);
  });

  test('is refused after a restart as well, until the operator raises it', async () => {
    await service.restart();
    const { quotas, day, resets_at } = await storage();
    expect(quotas.events_per_day.used).toBeGreaterThan(quotas.events_per_day.limit);
    expect(Date.parse(resets_at) - Date.parse(day)).toBe(86_400_000);
    const key = { 'idempotency-key': 'once' };
    expectFailure(await create(mine(), key), 'quota_exceeded');
    await limit({ events_per_day: (await usedOf('events_per_day')) + 100 });
    expect((await create(mine(), key)).status).toBe(200);
  });

  test.each(['bytes_per_day', 'events', 'bytes'] as const)('is told which: %s', async (name) => {
    await limit({ ...NONE, [name]: 0 });
    await limit({ [name]: await usedOf(name) });
    const refused = await create();
    expect(expectFailure(refused, 'quota_exceeded').error).toContain(`\`${name}\``);
    expect(refused.headers.has('retry-after')).toBe(name.endsWith('_per_day'));
    await limit({ [name]: 0 });
    expect((await create()).status).toBe(200);
  });
});

test('a burst passes no quota, however far the projector is behind', async () => {
  await limit({ events_per_day: (await usedOf('events_per_day')) + 20 });
  // Setting the quota is an event as well.
  const { used, limit: most } = (await storage()).quotas.events_per_day;
  const replies = await Promise.all(Array.from({ length: 60 }, () => create()));
  expect(replies.filter(({ status }) => status === 200)).toHaveLength(most - used);
  expect(await usedOf('events_per_day')).toBe(most);
  await limit({ events_per_day: 0 });
});

test('reads beyond the quota of recorded reads are refused, never answered unrecorded; writes continue', async () => {
  const agent = (await create()).body.data.agent_id as string;
  const session = (await run(agent)).body.data.session_id as string;
  const read = () => mine().get(`/v1/sessions/${session}/events?limit=1`);
  await limit({ audits_per_day: (await usedOf('audits_per_day')) + 3 });
  const replies = [];
  for (let times = 0; times < 6; times += 1) replies.push(await read());
  expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 429, 429, 429]);
  expectFailure(replies[5]!, 'quota_exceeded');
  expect(await usedOf('audits_per_day')).toBe((await storage()).quotas.audits_per_day.limit);
  expect((await run(agent, session)).status).toBe(200);
  expect((await mine().get(`/v1/sessions/${session}`)).status).toBe(200);
  const erase = () => mine().send('DELETE', `/v1/sessions/${session}`, '');
  for (let times = 0; times < 3; times += 1) expect((await erase()).status).toBe(200);
  expectFailure(await mine().get(`/v1/sessions/${session}`), 'session_erased');
  expect(await usedOf('audits_per_day')).toBe((await storage()).quotas.audits_per_day.limit);
});
