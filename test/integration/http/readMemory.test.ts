/** Every command that reads a stream waits for memory first. */
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import type { FairSemaphore } from '../../../shared/lib/concurrency/fairSemaphore.ts';
import type { Permit } from '../../../shared/lib/concurrency/capacity.ts';
import { registeredResources } from '../../../shared/lib/concurrency/resources.ts';
import { startTestService, type Reply, type TestService } from '../../support/http/service.ts';
import { eventually } from '../../support/processes/operator.ts';

let service: TestService;
let agent: string;
let session: string;
let webhook: string;
let endedReplay: string;
let held: Permit | undefined;

const reads = (): FairSemaphore =>
  registeredResources().find(([name]) => name === 'memory_session_reads')![1] as FairSemaphore;

beforeAll(async () => {
  service = await startTestService({ text: 'Hello.' }, { WEBHOOKS_ALLOW_PRIVATE: 'true' });
  agent = await service.createAgent();
  session = (await service.post(`/v1/agents/${agent}/run`, { input: 'hi' })).body.data.session_id;
  endedReplay = (await service.post('/v1/replays', { sessions: [session] })).body.data.replay_id;
  await eventually(
    () => service.get(`/v1/replays/${endedReplay}`),
    ({ body }) => body.data.status === 'completed',
  );
  webhook = (await service.post('/v1/webhooks', { url: 'http://127.0.0.1:9/' })).body.data
    .webhook_id;
});
afterAll(() => service.close());
afterEach(() => held?.release());

/** Another account holds all of it, also what the session cache could lend. */
const holdAll = (): Permit =>
  (held = reads().forceAcquire({ account_id: 'other', bytes: 10 * reads().usage().bytes.limit }));

const keyed = (key: string) => ({ 'idempotency-key': key });
const post = (path: string, body: unknown = '', headers = {}) => service.post(path, body, headers);
const COMMANDS: readonly (readonly [string, number, () => Promise<Reply>])[] = [
  ['a cancellation', 200, () => post(`/v1/sessions/${session}/cancel`)],
  ['a keyed cancellation', 200, () => post(`/v1/sessions/${session}/cancel`, '', keyed('a'))],
  ['a cancellation of a replay', 200, () => post(`/v1/replays/${endedReplay}/cancel`)],
  ['a fork', 200, () => post(`/v1/sessions/${session}/fork`, { at_turn: 1 })],
  ['a title', 200, () => service.send('PATCH', `/v1/sessions/${session}`, { title: 'x' })],
  [
    'a keyed new key',
    200,
    () => post('/v1/keys', { name: 'x', scopes: ['agents:read'] }, keyed('b')),
  ],
  [
    'a change of a webhook',
    200,
    () => service.send('PATCH', `/v1/webhooks/${webhook}`, { enabled: false }),
  ],
  ['a change of an agent', 200, () => service.send('PATCH', `/v1/agents/${agent}`, { name: 'x' })],
  [
    'a run of a known session',
    200,
    () => post(`/v1/agents/${agent}/run`, { input: 'x', session_id: session }),
  ],
  ['a keyed run', 200, () => post(`/v1/agents/${agent}/run`, { input: 'x' }, keyed('c'))],
  ['the same run again', 200, () => post(`/v1/agents/${agent}/run`, { input: 'x' }, keyed('c'))],
  ['an erasure of a session', 200, () => service.send('DELETE', `/v1/sessions/${session}`, '')],
  [
    'a refused deletion',
    412,
    () => service.send('DELETE', `/v1/agents/${agent}`, '', { 'if-match': '"none"' }),
  ],
  ['a deletion', 200, () => service.send('DELETE', `/v1/agents/${agent}`, '')],
  ['an erasure of an agent', 200, () => post(`/v1/agents/${agent}/erase`)],
];

test.each(COMMANDS)('%s reads within reserved memory', async (_what, status, send) => {
  const permit = holdAll();
  let isAnswered = false;
  const answer = send().finally(() => (isAnswered = true));
  const waiting = async (): Promise<number> => reads().usage().waiting;
  expect(await eventually(waiting, (count) => count > 0 || isAnswered)).toBe(1);
  expect(isAnswered).toBe(false);
  permit.release();
  expect((await answer).status).toBe(status);
  expect(reads().usage()).toMatchObject({ waiting: 0, bytes: { used: 0 } });
});

test('a client that leaves waits no longer', async () => {
  holdAll();
  const leaving = new AbortController();
  const url = `${service.url}/v1/sessions/${session}/cancel`;
  const headers = { 'content-type': 'application/json', 'x-api-key': service.key };
  const sent = fetch(url, { method: 'POST', headers, signal: leaving.signal });
  const waiting = async (): Promise<number> => reads().usage().waiting;
  await eventually(waiting, (count) => count === 1);
  leaving.abort();
  await expect(sent).rejects.toThrow();
  await eventually(waiting, (count) => count === 0);
});

test('a key is revoked without a wait for memory', async () => {
  const issued = await post('/v1/keys', { name: 'x', scopes: ['agents:read'] });
  holdAll();
  const { status } = await service.send('DELETE', `/v1/keys/${issued.body.data.key_id}`, '');
  expect(status).toBe(200);
});

test('the erasure of a session that has begun waits for no memory to erase its replays', async () => {
  const agent_id = await service.createAgent();
  const run = await post(`/v1/agents/${agent_id}/run`, { input: 'hi' });
  const { session_id } = run.body.data;
  const replay = (await post('/v1/replays', { sessions: [session_id] })).body.data.replay_id;
  await eventually(
    () => service.get(`/v1/replays/${replay}`),
    ({ body }) => body.data.status === 'completed',
  );
  const turns = (await service.get(`/v1/replays/${replay}`)).body.data.turns;
  const replayed = turns[0].replay_session_id;
  // All memory is taken as soon as the erasure has released what it reserved.
  const permit = holdAll();
  const erasing = service.send('DELETE', `/v1/sessions/${session_id}`, '');
  await eventually(
    async () => reads().usage().waiting,
    (count) => count === 1,
  );
  const ended = new AbortController();
  const bounds = { waitMs: 60_000, signal: ended.signal };
  const { limit: bytes } = reads().usage().bytes;
  const others = Array.from({ length: 20 }, (_, other) =>
    reads().acquire({ account_id: `other_${other}`, bytes }, bounds),
  );
  permit.release();
  expect((await erasing).status).toBe(200);
  ended.abort();
  for (const other of await Promise.allSettled(others))
    if (other.status === 'fulfilled') other.value.release();
  expect((await service.get(`/v1/sessions/${replayed}`)).status).toBe(410);
});
