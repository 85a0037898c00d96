import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { request as sendRaw } from 'node:http';
import { expectFailure } from '../../support/http/failures.ts';
import { eventually } from '../../support/processes/operator.ts';
import {
  startTestService,
  TEST_KEY,
  type Reply,
  type TestService,
} from '../../support/http/service.ts';

let service: TestService;
let agent: string;
const held: (() => void)[] = [];

beforeAll(async () => {
  service = await startTestService(
    async ({ messages }) => {
      const { content } = messages.at(-1)!;
      if (content === 'held') await new Promise<void>((resolve) => held.push(resolve));
      if (content === 'refused') return { status: 400, body: { error: { message: 'no' } } };
      return { text: `re: ${content}` };
    },
    { RUN_WAIT_MS: '1000' },
  );
  agent = await service.createAgent();
});
afterAll(() => service.close());

const AGENT = { name: 'Sums', instruction: 'Add.', model: 'scripted' };
const keyed = (key: string) => ({ 'idempotency-key': key });
const run = (body: object, key: string): Promise<Reply> =>
  service.post(`/v1/agents/${agent}/run`, body, keyed(key));
const isReplayed = ({ headers }: Reply): boolean => headers.get('idempotency-replayed') === 'true';
const turnsOf = async (session: string): Promise<unknown[]> =>
  (await service.get(`/v1/sessions/${session}`)).body.data.turns as unknown[];
const letGo = (): void => held.splice(0).forEach((answer) => answer());

describe('the header Idempotency-Key', () => {
  test('is the same key in quotes and as bare text', async () => {
    const key = `order 7; "${randomUUID()}`;
    const bare = await service.post('/v1/agents', AGENT, keyed(key));
    const quoted = await service.post('/v1/agents', AGENT, keyed(`"${key.replace('"', '\\"')}"`));
    expect([isReplayed(bare), isReplayed(quoted)]).toEqual([false, true]);
    expect(quoted.body).toEqual(bare.body);
  });

  test.each([
    ['', 'empty'],
    ['""', 'an empty string'],
    ['"open', 'a string that does not end'],
    ['"a\\b"', 'an escape that there is not'],
    ['"a";b=1', 'a string with parameters'],
    [`"${'x'.repeat(256)}"`, '256 characters in quotes'],
    ['x'.repeat(256), '256 characters'],
    ['caf\u00e9', 'other than ASCII'],
    ['a\tb', 'a control character'],
  ])('%p is refused: %s', async (key) => {
    const reply = await service.post('/v1/agents', AGENT, keyed(key));
    expectFailure(reply, 'invalid_request');
    expect(reply.body.details).toHaveProperty('idempotency-key');
  });

  test.each([`"${'x'.repeat(255)}"`, 'y'.repeat(255)])('may have 255 characters', async (key) => {
    expect(await service.post('/v1/agents', AGENT, keyed(key))).toMatchObject({ status: 200 });
  });

  test('is refused where it is sent twice', async () => {
    const status = await new Promise((resolve, reject) => {
      const headers = {
        'x-api-key': TEST_KEY,
        'content-type': 'application/json',
        'idempotency-key': ['one', 'two'],
      };
      const sent = sendRaw(`${service.url}/v1/agents`, { method: 'POST', headers });
      sent.on('response', (response) => resolve(response.resume().statusCode)).on('error', reject);
      sent.end(JSON.stringify(AGENT));
    });
    expect(status).toBe(400);
  });

  test('is ignored with other methods', async () => {
    expect(await service.get('/v1/agents', keyed('""'))).toMatchObject({ status: 200 });
  });
});

describe('a POST with a key that came before', () => {
  test('creates one agent, and is answered the same, also after a restart', async () => {
    const key = randomUUID();
    const first = await service.post('/v1/agents', AGENT, keyed(key));
    const { body: before } = await service.get('/v1/agents');
    await service.restart();
    const again = await service.post('/v1/agents', AGENT, keyed(key));
    expect(again.body).toEqual(first.body);
    expect([isReplayed(first), isReplayed(again)]).toEqual([false, true]);
    expect((await service.get('/v1/agents')).body.data).toEqual(before.data);
  });

  test('runs one turn of a new session, and is answered the same byte for byte', async () => {
    const key = randomUUID();
    const calls = service.model.requests.length;
    const first = await run({ input: 'hello' }, key);
    const again = await run({ input: 'hello' }, key);
    await service.restart();
    const later = await run({ input: 'hello' }, key);
    expect(first).toMatchObject({ status: 200, body: { data: { output: 're: hello' } } });
    for (const reply of [again, later]) {
      expect(JSON.stringify(reply.body)).toBe(JSON.stringify(first.body));
      expect(isReplayed(reply)).toBe(true);
    }
    expect(service.model.requests).toHaveLength(calls + 1);
    expect(await turnsOf(first.body.data.session_id)).toHaveLength(1);
  });

  test('is found in a session that has gone on for long', async () => {
    const { body } = await run({ input: 'one' }, randomUUID());
    const { session_id } = body.data;
    const key = randomUUID();
    const first = await run({ input: 'two', session_id }, key);
    for (let turn = 0; turn < 70; turn += 1)
      await service.post(`/v1/agents/${agent}/run`, { input: 'on', session_id });
    const again = await run({ input: 'two', session_id }, key);
    expect(again.body).toEqual(first.body);
    expect(isReplayed(again)).toBe(true);
    expect(await turnsOf(session_id)).toHaveLength(72);
  });

  test('is answered the failure that was recorded', async () => {
    const key = randomUUID();
    const first = await run({ input: 'refused' }, key);
    const again = await run({ input: 'refused' }, key);
    expectFailure(first, 'model_error');
    expectFailure(again, 'model_error');
    expect(again.body.error).toBe(first.body.error);
    expect([isReplayed(first), isReplayed(again)]).toEqual([false, true]);
  });

  test('is refused with another body or query, and not for how it is printed', async () => {
    const key = randomUUID();
    const first = await run({ input: 'hello' }, key);
    expectFailure(await run({ input: 'hullo' }, key), 'idempotency_conflict');
    const path = `/v1/agents/${agent}/run?pretty=true`;
    const pretty = await service.post(path, { input: 'hello' }, keyed(key));
    expect(pretty.body.data).toEqual(first.body.data);
  });

  test('is another request at another agent', async () => {
    const key = randomUUID();
    const other = await service.createAgent();
    const first = await run({ input: 'hello' }, key);
    const second = await service.post(`/v1/agents/${other}/run`, { input: 'hello' }, keyed(key));
    expect(isReplayed(second)).toBe(false);
    expect(second.body.data.session_id).not.toBe(first.body.data.session_id);
  });

  test('waits for the first one, as long as a run waits, then says that it still runs', async () => {
    const key = randomUUID();
    const calls = service.model.requests.length;
    const first = run({ input: 'held' }, key);
    await eventually(
      async () => held,
      (waiting) => waiting.length > 0,
    );
    const tooLate = await run({ input: 'held' }, key);
    expectFailure(tooLate, 'idempotency_in_progress');
    expect(isReplayed(tooLate)).toBe(false);
    const waiting = run({ input: 'held' }, key);
    letGo();
    const [one, other] = await Promise.all([first, waiting]);
    expect(other.body).toEqual(one.body);
    expect([isReplayed(one), isReplayed(other)]).toEqual([false, true]);
    expect(service.model.requests).toHaveLength(calls + 1);
  });

  test('gets the answer whose connection was lost', async () => {
    const key = randomUUID();
    const calls = service.model.requests.length;
    const lost = new AbortController();
    const first = fetch(`${service.url}/v1/agents/${agent}/run`, {
      method: 'POST',
      headers: { 'x-api-key': service.key, 'content-type': 'application/json', ...keyed(key) },
      body: '{"input":"held"}',
      signal: lost.signal,
    });
    await eventually(
      async () => held,
      (waiting) => waiting.length > 0,
    );
    lost.abort();
    await expect(first).rejects.toThrow();
    const again = run({ input: 'held' }, key);
    letGo();
    expect((await again).body.data.output).toBe('re: held');
    expect(service.model.requests).toHaveLength(calls + 1);
  });

  test('is answered turn_interrupted where the first was cut off, and runs with another key only', async () => {
    const key = randomUUID();
    const calls = service.model.requests.length;
    const cut = run({ input: 'held' }, key);
    await eventually(
      async () => held,
      (waiting) => waiting.length > 0,
    );
    await service.restart();
    const first = expectFailure(await cut, 'turn_interrupted');
    letGo();
    const again = await run({ input: 'held' }, key);
    expect(expectFailure(again, 'turn_interrupted').error).toBe(first.error);
    expect(isReplayed(again)).toBe(true);
    expect(service.model.requests).toHaveLength(calls + 1);
    const other = run({ input: 'held' }, randomUUID());
    await eventually(
      async () => held,
      (waiting) => waiting.length > 0,
    );
    letGo();
    expect((await other).status).toBe(200);
  });

  test('of fifty at once one runs, and all are answered the same', async () => {
    const key = randomUUID();
    const calls = service.model.requests.length;
    const replies = await Promise.all(Array.from({ length: 50 }, () => run({ input: 'all' }, key)));
    expect(new Set(replies.map(({ body }) => JSON.stringify(body))).size).toBe(1);
    expect(replies.filter((reply) => !isReplayed(reply))).toHaveLength(1);
    expect(service.model.requests).toHaveLength(calls + 1);
  });
});

describe('a POST with a key whose first try recorded nothing', () => {
  test('leaves no trace where the operation refuses it', async () => {
    const key = randomUUID();
    const nobody = 'agent_01kahz0b2re5v8k2s4n6t8w0y2';
    const path = `/v1/agents/${nobody}/run`;
    expectFailure(await service.post(path, { input: 'x' }, keyed(key)), 'agent_not_found');
    // Nothing is held against the key: another body is no conflict.
    expectFailure(await service.post(path, { input: 'y' }, keyed(key)), 'agent_not_found');
  });

  test('is tried again where the session was busy', async () => {
    const { session_id } = (await run({ input: 'begin' }, randomUUID())).body.data;
    const busy = run({ input: 'held', session_id }, randomUUID());
    await eventually(
      async () => held,
      (waiting) => waiting.length > 0,
    );
    const key = randomUUID();
    expectFailure(await run({ input: 'next', session_id }, key), 'session_busy');
    letGo();
    await busy;
    const next = await run({ input: 'next', session_id }, key);
    expect(next.body.data.output).toBe('re: next');
    expect(isReplayed(next)).toBe(false);
    expect(await turnsOf(session_id)).toHaveLength(3);
  });
});

describe('an erasure with a key', () => {
  test('is answered the same, and erases once', async () => {
    const erased = await service.createAgent();
    const key = randomUUID();
    const path = `/v1/agents/${erased}/erase`;
    const first = await service.send('POST', path, '', keyed(key));
    const again = await service.send('POST', path, '', keyed(key));
    expect(again.body.data.event).toEqual(first.body.data.event);
    expect([isReplayed(first), isReplayed(again)]).toEqual([false, true]);
    const other = await service.send('POST', `${path}?note=why`, '', keyed(key));
    expectFailure(other, 'idempotency_conflict');
  });

  test('of the session leaves of its run the word that it was erased', async () => {
    const key = randomUUID();
    const { session_id } = (await run({ input: 'hello' }, key)).body.data;
    await service.send('DELETE', `/v1/sessions/${session_id}`, '');
    expectFailure(await run({ input: 'hello' }, key), 'session_erased');
  });
});
