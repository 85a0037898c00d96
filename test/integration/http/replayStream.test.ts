import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { LIMITS } from '../../../shared/limits.ts';
import { openEvents, type Heard } from '../../support/http/sse.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';

let service: TestService;
let agent: string;
beforeAll(async () => {
  service = await startTestService();
  agent = await service.createAgent();
});
afterAll(() => service.close());

async function recorded(input: string): Promise<string> {
  const { data } = (await service.post(`/v1/agents/${agent}/run`, { input })).body;
  return data.session_id as string;
}
async function start(body: object): Promise<string> {
  const { data } = (await service.post('/v1/replays', body)).body;
  return data.replay_id as string;
}

test('a replay is told as events, which go on behind any of them, to the end', async () => {
  const sessions = [await recorded('One?'), await recorded('Two?')];
  const replayId = await start({ sessions });
  const headers = { 'x-api-key': service.key };
  const path = `${service.url}/v1/replays/${replayId}/stream`;
  const heard = async (more: Record<string, string> = {}): Promise<Heard[]> => {
    const stream = await openEvents(path, { headers: { ...headers, ...more } });
    const events: Heard[] = [];
    for await (const event of stream.events) events.push(event);
    return events;
  };
  const all = await heard();
  const told = all.filter(({ event }) => event !== 'replay.progress');
  expect(told.map(({ event }) => event)).toEqual([
    'session.ended',
    'session.ended',
    'replay.ended',
  ]);
  expect(told.slice(0, 2).map(({ data }) => data.session_id)).toEqual(sessions);
  expect(told.at(-1)!.data).toMatchObject({ replay_id: replayId, status: 'completed' });
  const rest = await heard({ 'last-event-id': told[0]!.id! });
  expect(rest).toEqual(told.slice(1));
  const done = { ...headers, 'last-event-id': told.at(-1)!.id! };
  expect((await fetch(path, { headers: done })).status).toBe(204);
  const wrong = await service.get(`/v1/replays/${replayId}/stream`, { 'last-event-id': 'x' });
  expect(wrong).toMatchObject({ status: 400, body: { code: 'invalid_request' } });
  expect(Object.keys(wrong.body.details!)).toEqual(['Last-Event-ID']);
});

test('a replay is told no more once the key of the stream is revoked', async () => {
  const replayed = Promise.withResolvers<object>();
  const session = await recorded('One?');
  service.model.use(() => replayed.promise);
  const replayId = await start({ sessions: [session] });
  const { api_key, key_id } = (
    await service.post('/v1/keys', { name: 'revoked', scopes: ['sessions:read'] })
  ).body.data;
  const headers = { 'x-api-key': api_key };
  const stream = await fetch(`${service.url}/v1/replays/${replayId}/stream`, { headers });
  expect(stream.status).toBe(200);
  await service.send('DELETE', `/v1/keys/${key_id}`, '');
  await sleep(LIMITS.feed.keyCheckMs + 500);
  replayed.resolve({ text: 'Hello.' });
  expect(await stream.text()).not.toContain('ended');
});
