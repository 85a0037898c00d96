import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startTestService, type TestService } from '../../support/http/service.ts';
import { runCli } from '../../support/processes/cliProcess.ts';

interface Audited {
  data: { action: string; subject: string; detail?: string };
  metadata: { key_id: string };
}

let service: TestService;
let session: string;
beforeAll(async () => {
  service = await startTestService();
  const agent = await service.createAgent();
  session = (await service.post(`/v1/agents/${agent}/run`, { input: 'hi' })).body.data
    .session_id as string;
});
afterAll(() => service.close());

async function audited(): Promise<Audited['data'][]> {
  const { out } = await runCli(service.folder, 'events', 'tail', '--no-follow');
  return out
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Audited & { stream: string })
    .filter(({ stream }) => stream.startsWith('audit-'))
    .map(({ data }) => data);
}

async function readAll(): Promise<void> {
  for (let time = 0; time < 2; time += 1) {
    const headers = { 'x-api-key': service.key };
    const feed = await fetch(`${service.url}/v1/events?format=jsonl`, { headers });
    expect(await feed.text()).toContain('"hi"');
    const streaming = new AbortController();
    const sse = await fetch(`${service.url}/v1/events`, { headers, signal: streaming.signal });
    const reader = sse.body!.pipeThrough(new TextDecoderStream()).getReader();
    for (let text = ''; !text.includes('"hi"');) text += (await reader.read()).value!;
    streaming.abort();
    const turn = `/v1/sessions/${session}/turns/1`;
    expect((await service.get(`${turn}/requests`)).status).toBe(200);
    expect((await service.get(turn)).status).toBe(200);
    expect((await service.get(`/v1/sessions/${session}`)).status).toBe(200);
    expect((await service.get('/v1/sessions?q=hi')).status).toBe(200);
  }
}

test('reads of the feed and of requests are in the audit once, before they are answered', async () => {
  expect(
    (await service.get('/v1/sessions/session_01kahz1c3sf6w9m3v5q7x9z1a3/turns/1/requests')).status,
  ).toBe(404);
  await readAll();
  expect(await audited()).toEqual([
    { action: 'read', subject: expect.stringMatching(/^account-acct_/), detail: 'feed' },
    { action: 'read', subject: `session-${session}`, detail: 'requests' },
  ]);
}, 60_000);

test('transcripts are, where the operator says so; and none', async () => {
  await service.restart({ AUDIT_READS: 'transcripts' });
  const before = await audited();
  await readAll();
  expect((await audited()).slice(before.length)).toEqual([
    { action: 'read', subject: `session-${session}`, detail: 'transcripts' },
    { action: 'read', subject: expect.stringMatching(/^account-acct_/), detail: 'transcripts' },
  ]);
  await service.restart({ AUDIT_READS: 'none' });
  const after = await audited();
  await readAll();
  expect(await audited()).toEqual(after);
}, 60_000);
