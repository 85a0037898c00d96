import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { expectFailure } from '../../support/http/failures.ts';
import { startTestService, type Reply, type TestService } from '../../support/http/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

const agentBody = { name: 'A', instruction: 'B.', model: 'scripted' };
async function endedTurn(): Promise<string> {
  const agent = await service.createAgent();
  const { body } = await service.post(`/v1/agents/${agent}/run`, { input: 'hi' });
  return body.data.session_id as string;
}

/** What a creation answers, and the object at its location. */
async function createdAt(reply: Reply): Promise<{ reply: Reply; read: Reply; path: string }> {
  const path = reply.headers.get('location')!;
  return { reply, read: await service.get(path), path };
}

test.each<[string, () => Promise<Reply>]>([
  ['an agent', () => service.post('/v1/agents', agentBody)],
  ['a webhook', () => service.post('/v1/webhooks', { url: 'https://[3ffe::1]/hook' })],
  ['a fork', async () => service.post(`/v1/sessions/${await endedTurn()}/fork`, { at_turn: 1 })],
])('the answer to the creation of %s has its Location and its ETag', async (_what, create) => {
  const { reply, read, path } = await createdAt(await create());
  expect([reply.status, read.status]).toEqual([200, 200]);
  const id = Object.values(reply.body.data as object)[0] as string;
  expect(path.endsWith(`/${id}`)).toBe(true);
  expect(reply.headers.get('etag')).toMatch(/^"0-[\w-]+"$/);
  expect(read.headers.get('etag')).toBe(reply.headers.get('etag'));
});

test('the answer to the start of a replay has its Location and the ETag of its beginning', async () => {
  const sessions = [await endedTurn()];
  const body = { sessions, tools: 'recorded', budget: { tokens: 1_000 } };
  const { reply, read, path } = await createdAt(await service.post('/v1/replays', body));
  expect(reply.status).toBe(202);
  expect(path).toBe(`/v1/replays/${reply.body.data.replay_id}`);
  expect(reply.headers.get('etag')).toMatch(/^"0-[\w-]+"$/);
  expect(read.headers.get('etag')).toMatch(new RegExp(`^"${read.body.data.revision}-`));
});

test('a repeated creation answers the same Location and ETag', async () => {
  const key = { 'idempotency-key': 'created-1' };
  const [first, again] = [
    await service.post('/v1/agents', agentBody, key),
    await service.post('/v1/agents', agentBody, key),
  ];
  expect(again.headers.get('idempotency-replayed')).toBe('true');
  for (const header of ['location', 'etag'])
    expect(again.headers.get(header)).toBe(first.headers.get(header));
});

test.each<[string, () => Promise<Reply>, object]>([
  [
    'a webhook',
    () => service.post('/v1/webhooks', { url: 'https://[3ffe::1]/other' }),
    { enabled: false },
  ],
  [
    'a session',
    async () => service.post(`/v1/sessions/${await endedTurn()}/fork`, { at_turn: 1 }),
    { title: 'Changed' },
  ],
])('a change of %s with If-Match is made at that revision alone', async (_what, create, change) => {
  const { reply, path } = await createdAt(await create());
  const first = { 'if-match': reply.headers.get('etag')! };
  const changed = await service.send('PATCH', path, change, first);
  expect([changed.status, changed.body.data.revision]).toEqual([200, 1]);
  expect(changed.headers.get('etag')).toMatch(/^"1-/);
  expectFailure(await service.send('PATCH', path, change, first), 'precondition_failed');
  const next = { 'if-match': changed.headers.get('etag')! };
  expect((await service.send('PATCH', path, change, next)).status).toBe(200);
  expect((await service.get(path)).headers.get('etag')).toBe(changed.headers.get('etag'));
});

test('a webhook is deleted with If-Match at that revision alone', async () => {
  const body = { url: 'https://[3ffe::1]/deleted' };
  const { reply, path } = await createdAt(await service.post('/v1/webhooks', body));
  await service.send('PATCH', path, { enabled: false });
  const first = { 'if-match': reply.headers.get('etag')! };
  expectFailure(await service.send('DELETE', path, '', first), 'precondition_failed');
  const now = { 'if-match': (await service.get(path)).headers.get('etag')! };
  expect((await service.send('DELETE', path, '', now)).status).toBe(200);
});
