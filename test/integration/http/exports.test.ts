import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { EXPORT_FORMATS } from '../../../shared/exports/formats.ts';
import { exported, linesOf } from '../../support/http/exported.ts';
import { asOperator } from '../../support/processes/operator.ts';
import { size } from '../../support/jest/size.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';

let service: TestService;
let agent: string;
/** Has a turn with tools, one that failed, and one with an answer. */
let session: string;
/** What the model was asked for the last turn of the session. */
let asked: (typeof service.model.requests)[number]['messages'];

const UNICODE = 'Größe? "𝄞" \u2028 \u0007';

async function run(input: string, session_id?: string): Promise<string> {
  const body = { input, ...(session_id !== undefined && { session_id }) };
  const answer = await service.post(`/v1/agents/${agent}/run`, body);
  return (answer.body.data?.session_id as string | undefined) ?? '';
}
async function accountOf(): Promise<string> {
  const { data } = (await service.get(`/v1/sessions/${session}/events?limit=1`)).body;
  return data[0].metadata.account_id as string;
}
const exportOf = (id: string, format: string) =>
  exported(service, `/v1/sessions/${id}/export?format=${format}`);

beforeAll(async () => {
  service = await startTestService({ text: 'Hello.' }, { MODEL_MAX_RETRIES: '0' });
  agent = await service.createAgent({ tool: 'calculator' });
  service.model.use([
    {
      text: 'Let me see.',
      tool_calls: [
        { id: 'a', name: 'calculator', arguments: '{"expression":"1+1"}' },
        { id: 'b', name: 'calculator', arguments: '{"expression":' },
      ],
    },
    { text: '2' },
  ]);
  session = await run(UNICODE);
  service.model.use({ status: 500 });
  await run('fail', session);
  service.model.use({ text: UNICODE });
  await service.send('PUT', `/v1/agents/${agent}`, {
    name: 'Test',
    instruction: 'Be long.',
    model: 'scripted',
  });
  await run('again', session);
  asked = service.model.requests.at(-1)!.messages;
  service.model.use({ text: 'Yes.' });
  for (const input of ['one', 'two', 'three']) await run(input);
});
afterAll(() => service.close());

test('a session as events is what the list of its events shows, line by line', async () => {
  const { status, type, text } = await exportOf(session, 'events');
  expect([status, type]).toEqual([200, 'application/jsonl; charset=utf-8']);
  const { body } = await service.get(`/v1/sessions/${session}/events?limit=1000`);
  expect(linesOf(text)).toEqual(body.data);
});

test('a session for fine-tuning is what its models saw, without turns that have no answer', async () => {
  const { text } = await exportOf(session, 'openai-chat');
  const [line, ...others] = linesOf(text);
  expect(others).toEqual([]);
  expect(line.messages).toEqual([
    { role: 'system', content: 'Be brief.' },
    ...asked.slice(1, -1),
    { role: 'system', content: 'Be long.' },
    asked.at(-1),
    { role: 'assistant', content: UNICODE },
  ]);
  expect(line.messages[2].tool_calls).toHaveLength(2);
  expect(line.messages[5]).toEqual({ role: 'assistant', content: '2' });
  expect(line.tools).toEqual(service.model.requests[0]!.tools);
  expect(text).not.toContain('fail');
});

test('a session without an answer is no line for fine-tuning', async () => {
  service.model.use({ status: 500 });
  await run('only this fails');
  const { data } = (await service.get('/v1/sessions?limit=1')).body;
  const answer = await exportOf(data[0].session_id as string, 'openai-chat');
  expect([answer.status, answer.text]).toEqual([200, '']);
});

describe.each(EXPORT_FORMATS)('as %s', (format) => {
  test('the same export gives the same bytes', async () => {
    const texts = [await exportOf(session, format), await exportOf(session, format)];
    expect(texts[0]!.text).not.toBe('');
    expect(texts[0]).toEqual(texts[1]);
  });

  test('many sessions are their exports, one after the other, in the order of the list', async () => {
    for (const order of ['newest', 'oldest']) {
      const { data } = (await service.get(`/v1/sessions?limit=1000&order=${order}`)).body;
      const each: string[] = [];
      for (const { session_id } of data) each.push((await exportOf(session_id, format)).text);
      const all = await exported(service, `/v1/export?format=${format}&order=${order}`);
      expect(all).toMatchObject({ status: 200, text: each.join(''), next: undefined });
      let paged = '';
      let path: string | undefined = `/v1/export?format=${format}&order=${order}&limit=2`;
      for (; path !== undefined;) {
        const page = await exported(service, path);
        paged += page.text;
        path = page.next;
      }
      expect(paged).toBe(each.join(''));
    }
  });

  test('only the sessions that the filters of the list leave are exported', async () => {
    await service.send('PATCH', `/v1/sessions/${session}`, { labels: { kept: 'yes' } });
    const { text } = await exported(service, `/v1/export?format=${format}&label=kept:yes`);
    expect(text).toBe((await exportOf(session, format)).text);
    const none = await exported(service, `/v1/export?format=${format}&label=kept:no`);
    expect(none.text).toBe('');
  });

  test('an erased session is gone, and many are exported without it', async () => {
    service.model.use({ text: 'Yes.' });
    const erased = await run('a secret of its own');
    expect((await service.send('DELETE', `/v1/sessions/${erased}`, '')).status).toBe(200);
    const { status, body } = await service.get(`/v1/sessions/${erased}/export?format=${format}`);
    expect([status, body.code]).toEqual([410, 'session_erased']);
    const all = await exported(service, `/v1/export?format=${format}`);
    expect(all.status).toBe(200);
    expect(all.text).not.toContain(erased);
  });
});

test('a format that there is not, and none, are refused by name', async () => {
  for (const query of ['', '?format=csv', '?format=']) {
    const { status, body } = await service.get(`/v1/export${query}`);
    expect([status, body.code, Object.keys(body.details!)]).toEqual([
      400,
      'invalid_request',
      ['format'],
    ]);
  }
});

test('a long session is exported whole, and in order', async () => {
  const turns = size({ small: 150, full: 1_200 });
  const long = await service.createAgent({ model: 'narrow' });
  service.model.use({ text: 'Yes.' });
  let id: string | undefined;
  for (let turn = 1; turn <= turns; turn += 1) {
    const body = { input: `question ${turn}`, ...(id !== undefined && { session_id: id }) };
    id = (await service.post(`/v1/agents/${long}/run`, body)).body.data.session_id as string;
  }
  const inputs = Array.from({ length: turns }, (_, index) => `question ${index + 1}`);
  const [line] = linesOf((await exportOf(id!, 'openai-chat')).text);
  const users = line.messages.filter(({ role }: { role: string }) => role === 'user');
  expect(users.map(({ content }: { content: string }) => content)).toEqual(inputs);
  const [trajectory] = linesOf((await exportOf(id!, 'atif')).text);
  expect(trajectory.steps).toHaveLength(1 + 2 * turns);
  expect(linesOf((await exportOf(id!, 'otel')).text)).toHaveLength(turns);
  expect(linesOf((await exportOf(id!, 'events')).text)).toHaveLength(1 + 2 * turns);
});

test('a session that is erased while it is sent, or a fork of it, is cut off in every format, and left out then', async () => {
  const wordy = await service.createAgent({ model: 'narrow' });
  // Few words, because the search indexes each.
  const text = `so many words ${'-'.repeat(300_000)}`;
  service.model.use({ text, pieces: [text] });
  let id: string | undefined;
  for (let turn = 0; turn < 60; turn += 1) {
    const body = { input: 'Go on.', ...(id !== undefined && { session_id: id }) };
    id = (await service.post(`/v1/agents/${wordy}/run`, body)).body.data.session_id as string;
  }
  const fork = (await service.post(`/v1/sessions/${id}/fork`, { at_turn: 60 })).body.data
    .session_id;
  const all = (format: string) => `/v1/export?format=${format}&agent_id=${wordy}&order=oldest`;
  const paths = EXPORT_FORMATS.flatMap((format) => [
    all(format),
    `/v1/sessions/${id}/export?format=${format}`,
    // As events a fork has its own only.
    ...(format === 'events' ? [] : [`/v1/sessions/${fork}/export?format=${format}`]),
  ]);
  // Their clients take nothing yet, so that most of it is still to be read.
  const answers = await Promise.all(
    paths.map((path) => fetch(service.url + path, { headers: { 'x-api-key': service.key } })),
  );
  expect(answers.map(({ status }) => status)).toEqual(paths.map(() => 200));
  expect((await service.send('DELETE', `/v1/sessions/${id}`, '')).status).toBe(200);
  for (const answer of answers) await expect(answer.text()).rejects.toThrow();
  for (const format of EXPORT_FORMATS)
    expect(await exported(service, all(format))).toMatchObject({
      status: 200,
      text: expect.not.stringContaining('so many words'),
    });
}, 120_000);

test('an export is in the audit of its account before it is answered', async () => {
  const stream = `audit-${await accountOf()}`;
  await exportOf(session, 'otel');
  await exported(service, '/v1/export?format=atif&limit=1');
  const audit = await asOperator(service.folder, ({ store }) =>
    store.readStream(stream, { direction: 'backwards', limit: 2 }),
  );
  expect(audit.map(({ data }) => JSON.parse(data) as object)).toEqual([
    { action: 'export', subject: expect.stringMatching(/^account-/), detail: 'format=atif' },
    { action: 'export', subject: `session-${session}`, detail: 'format=otel' },
  ]);
});
