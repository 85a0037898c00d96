import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { currentGeneration, generationFile } from '../../../infra/sqlite/readModels/generations.ts';
import { expectFailure } from '../../support/http/failures.ts';
import type { Script } from '../../support/fakes/scriptedModel.ts';
import { startTestService, type Reply, type TestService } from '../../support/http/service.ts';
import {
  expectGone,
  filesHolding,
  filesWith,
  newMarker,
} from '../../support/stores/erasure/holding.ts';
import { wrappedKeysOf } from '../../support/stores/erasure/wrappedKeys.ts';
import { clientWith, eventually, newKey } from '../../support/processes/operator.ts';

/** Tools are called with the marker that the input ends with, and answer it. */
const script: Script = ({ messages }) => {
  const last = messages.at(-1)!;
  const text = String(last.content);
  if (last.role === 'tool') return { text: `The tool said: ${text}` };
  if (text.startsWith('use the tool'))
    return {
      text: `beside it ${text}`,
      tool_calls: [{ name: 'calculator', arguments: JSON.stringify({ expression: text }) }],
    };
  if (text.startsWith('fail')) return { status: 400, body: { error: { message: text } } };
  return text.startsWith('slow') ? { fault: 'never_answer' } : { text: `re: ${text}` };
};

let service: TestService;
let agent: string;
let marker: string;
beforeAll(async () => {
  service = await startTestService(script);
});
afterAll(() => service.close());
beforeEach(async () => {
  marker = newMarker();
  agent = await service.createAgent({ name: marker, instruction: marker, tool: 'calculator' });
});

const run = (input: string, session_id?: string): Promise<Reply> =>
  service.post(`/v1/agents/${agent}/run`, { input, ...(session_id && { session_id }) });
const erase = (session: string, query = ''): Promise<Reply> =>
  service.send('DELETE', `/v1/sessions/${session}${query}`, '');
const eraseAgent = (): Promise<Reply> => service.send('POST', `/v1/agents/${agent}/erase`, '');

/** An answer without its proof, which may be under a later checkpoint the next time. */
const withoutReceipt = ({ body: { data } }: Reply): object => {
  const { receipt: _receipt, erasure_receipt: _proof, ...told } = data as Record<string, unknown>;
  return told;
};

/** A session with all kinds of texts in it. */
async function talked(): Promise<string> {
  const { data } = (await run(`hello ${marker}`)).body;
  const session = data.session_id as string;
  await run(`use the tool ${marker}`, session);
  await run(`fail ${marker}`, session);
  return session;
}

describe('erasing a session', () => {
  test('answers the event that says so, and the same again', async () => {
    const session = await talked();
    const before = (await service.get(`/v1/sessions/${session}/events`)).body.data as unknown[];
    const reply = await erase(session, '?note=asked%20by%20mail');
    expect(reply.status).toBe(200);
    expect(reply.body.data).toEqual({
      session_id: session,
      erased_at: expect.stringMatching(/Z$/),
      event: {
        id: expect.any(String),
        revision: before.length,
        hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      },
      receipt: expect.stringMatching(/^c2sp\.org\/tlog-proof@v1\n/),
      erasure_receipt: expect.objectContaining({ turnlog_receipt: 1, events: 8 }),
    });
    expect(reply.headers.get('link')).toBe(`</v1/sessions/${session}/proof>; rel="describedby"`);
    const again = await erase(session);
    expect([again.status, withoutReceipt(again)]).toEqual([200, withoutReceipt(reply)]);
  });

  test('leaves 410 to its account, whatever it asks, 404 to others, and no line in a list', async () => {
    const session = await talked();
    const stranger = await clientWith(service.url, await newKey(service.folder));
    expectFailure(
      await stranger.send('DELETE', `/v1/sessions/${session}`, ''),
      'session_not_found',
    );
    expect((await service.get(`/v1/sessions/${session}`)).status).toBe(200);
    await erase(session);
    for (const path of [`/v1/sessions/${session}`, `/v1/sessions/${session}/events`]) {
      expectFailure(await service.get(path), 'session_erased');
      expectFailure(await stranger.get(path), 'session_not_found');
    }
    expectFailure(await run('go on', session), 'session_erased');
    expectFailure(
      await stranger.send('DELETE', `/v1/sessions/${session}`, ''),
      'session_not_found',
    );
    for (const query of ['', `?agent_id=${agent}`]) {
      const { data } = (await service.get(`/v1/sessions${query}`)).body;
      expect((data as { session_id: string }[]).map(({ session_id }) => session_id)).not.toContain(
        session,
      );
    }
  });

  test('leaves no byte of its texts in any file of the data folder, while the service goes on', async () => {
    const sessions = [await talked(), await talked()];
    expect(filesHolding(service.folder, marker)).not.toEqual([]);
    await eraseAgent();
    for (const session of sessions) expect((await erase(session)).status).toBe(200);
    await expectGone(service.folder, marker);
  });

  test('leaves no row of a large session, which is erased for all requests at once', async () => {
    const long = `${marker}${' '.repeat(400_000)}`;
    const session = (await run(long)).body.data.session_id as string;
    for (let turn = 2; turn <= 4; turn += 1) expect((await run(long, session)).status).toBe(200);
    expect((await erase(session)).status).toBe(200);
    expectFailure(await service.get(`/v1/sessions/${session}`), 'session_erased');
    expectFailure(await service.get(`/v1/sessions/${session}/turns/4`), 'session_erased');
    const file = generationFile(service.folder, currentGeneration(service.folder)!);
    using database = new DatabaseSync(file, { readOnly: true });
    const count = database.prepare(
      'SELECT (SELECT count(*) FROM turns WHERE session_id = ?1) + (SELECT count(*) FROM turn_words WHERE session_id = ?1) AS rows',
    );
    const rows = await eventually(
      async () => count.get(session)!['rows'],
      (left) => left === 0,
    );
    expect(rows).toBe(0);
  });

  test('leaves no file with the key of its texts, which stand closed in all of them', async () => {
    const session = await talked();
    await eraseAgent();
    await expectGone(service.folder, marker);
    const transcript = await service.get(`/v1/sessions/${session}`);
    expect(JSON.stringify(transcript.body.data)).toContain(marker);
    const kept = await wrappedKeysOf(service.folder, session);
    expect(filesWith(service.folder, kept)).not.toEqual([]);
    await erase(session);
    expect(filesWith(service.folder, kept)).toEqual([]);
  });

  test('ends the run that works on it, whose answer is not recorded, and the model call', async () => {
    const session = (await run('hello')).body.data.session_id as string;
    const asked = service.model.requests.length;
    const abandoned = service.model.abandonedSoFar();
    const slow = run(`slow ${marker}`, session);
    const queued = run(`after ${marker}`, session);
    await service.model.received(asked + 1);
    expect((await erase(session)).status).toBe(200);
    for (const answer of await Promise.all([slow, queued])) expectFailure(answer, 'session_erased');
    await service.model.abandoned(abandoned + 1);
    await eraseAgent();
    await expectGone(service.folder, marker);
    expect((await service.get('/health/ready')).body.data.status).toBe('ready');
  });

  test('is done once when it is asked for at once, many times', async () => {
    const session = await talked();
    const answers = await Promise.all(Array.from({ length: 8 }, () => erase(session)));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(new Set(answers.map((answer) => JSON.stringify(withoutReceipt(answer)))).size).toBe(1);
  });

  test('outlives a restart', async () => {
    const session = await talked();
    const erased = await erase(session);
    await eraseAgent();
    await service.restart();
    expectFailure(await service.get(`/v1/sessions/${session}`), 'session_erased');
    expect(withoutReceipt(await erase(session))).toEqual(withoutReceipt(erased));
    await expectGone(service.folder, marker);
  });

  test.each([
    ['a note that is too long', `?note=${'n'.repeat(257)}`],
    ['what it does not know', '?why=x'],
  ])('is refused with %s, and nothing is erased', async (_what, query) => {
    const session = await talked();
    expectFailure(await erase(session, query), 'invalid_request');
    expect((await service.get(`/v1/sessions/${session}`)).status).toBe(200);
  });
});

describe('erasing an agent', () => {
  test('leaves 410 to its account, 404 to others, no line in the list, and its sessions', async () => {
    const session = (await run('hello')).body.data.session_id as string;
    const list = (await service.get('/v1/agents')).body.data as { agent_id: string }[];
    expect(list.map(({ agent_id }) => agent_id)).toContain(agent);
    const stranger = await clientWith(service.url, await newKey(service.folder));
    expectFailure(await stranger.send('POST', `/v1/agents/${agent}/erase`, ''), 'agent_not_found');
    const reply = await eraseAgent();
    expect([reply.status, reply.body.data.agent_id, reply.body.data.event.revision]).toEqual([
      200,
      agent,
      1,
    ]);
    expect((await eraseAgent()).body).toEqual(reply.body);
    expectFailure(await service.get(`/v1/agents/${agent}`), 'agent_erased');
    expectFailure(await run('hello'), 'agent_erased');
    expectFailure(await run('hello', session), 'agent_erased');
    expectFailure(await stranger.get(`/v1/agents/${agent}`), 'agent_not_found');
    const left = (await service.get('/v1/agents')).body.data as { agent_id: string }[];
    expect(left.map(({ agent_id }) => agent_id)).not.toContain(agent);
    expect((await service.get(`/v1/sessions/${session}`)).body.data.turns).toHaveLength(1);
  });

  test('ends its runs, whose turns are recorded as cancelled', async () => {
    const session = (await run('hello')).body.data.session_id as string;
    const asked = service.model.requests.length;
    const slow = run('slow', session);
    await service.model.received(asked + 1);
    expect((await eraseAgent()).status).toBe(200);
    expect(expectFailure(await slow, 'turn_interrupted').retry).toBe('never');
    const { turns } = (await service.get(`/v1/sessions/${session}`)).body.data;
    expect(turns.at(-1)).toMatchObject({
      status: 'interrupted',
      error: { code: 'turn_interrupted', reason: 'cancelled' },
    });
  });
});
