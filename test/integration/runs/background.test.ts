/** Runs that go on by themselves, and turns that are asked for while they run. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { expectFailure } from '../../support/http/failures.ts';
import { startTestService, type Reply, type TestService } from '../../support/http/service.ts';
import { clientWith, newKey } from '../../support/processes/operator.ts';

let service: TestService;
let agent: string;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());
beforeEach(async () => {
  service.model.use({ text: 'Hello.' });
  agent = await service.createAgent({ tool: 'calculator' });
});

const run = (input: string, prefer: string, session_id?: string): Promise<Reply> =>
  service.post(`/v1/agents/${agent}/run`, { input, ...(session_id && { session_id }) }, { prefer });
const turn = (session: string, number: number | string, prefer = ''): Promise<Reply> =>
  service.get(`/v1/sessions/${session}/turns/${number}`, prefer === '' ? {} : { prefer });
const transcript = async (session: string) =>
  (await service.get(`/v1/sessions/${session}`)).body.data.turns as { turn: number }[];

/** A model that answers when it is let. */
function heldModel(): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  service.model.use(async () => {
    await promise;
    return { text: 'At last.' };
  });
  return resolve;
}

describe('Prefer: respond-async', () => {
  test('is answered 202 as soon as the turn is recorded, with where it is to be had', async () => {
    const answer = heldModel();
    const { status, headers, body } = await run('slow', 'respond-async');
    const { session_id } = body.data;
    expect([status, body]).toEqual([
      202,
      { success: true, data: { session_id, turn: 1, status: 'running' }, status: 202 },
    ]);
    expect(headers.get('preference-applied')).toBe('respond-async');
    const location = headers.get('location')!;
    expect(location).toBe(`/v1/sessions/${session_id}/turns/1`);
    const running = await service.get(location);
    expect(running.body.data).toMatchObject({ turn: 1, status: 'running', output: null });
    answer();
    const ended = await service.get(location, { prefer: 'wait=20' });
    expect(ended.headers.get('preference-applied')).toBe('wait=20');
    expect(ended.body.data).toMatchObject({ status: 'completed', output: 'At last.' });
    expect(await transcript(session_id)).toEqual([ended.body.data]);
  });

  test('with wait answers the result where it comes in time, and 202 where it does not', async () => {
    const quick = await run('quick', 'respond-async, wait=20');
    expect([quick.status, quick.body.data.output]).toEqual([200, 'Hello.']);
    expect(quick.headers.get('preference-applied')).toBe('wait=20');
    const answer = heldModel();
    const slow = await run('slow', 'respond-async, wait=1', quick.body.data.session_id);
    expect([slow.status, slow.body.data.turn]).toEqual([202, 2]);
    answer();
    const { data } = (await turn(slow.body.data.session_id, 2, 'wait=20')).body;
    expect(data.status).toBe('completed');
  });

  test('refuses what a run refuses before its turn begins, and records a failure of the model', async () => {
    expectFailure(
      await service.post(`/v1/agents/${agent}/run`, { input: '' }, { prefer: 'respond-async' }),
      'invalid_request',
    );
    service.model.use({ status: 400 });
    const { data } = (await run('fail', 'respond-async')).body;
    const failed = (await turn(data.session_id, 1, 'wait=20')).body.data;
    expect(failed).toMatchObject({ status: 'failed', error: { code: 'model_error' } });
  });

  test('goes on when its client has left', async () => {
    const answer = heldModel();
    const { data } = (await run('slow', 'respond-async')).body;
    const waiting = new AbortController();
    const poll = fetch(`${service.url}/v1/sessions/${data.session_id}/turns/1`, {
      headers: { 'x-api-key': service.key, prefer: 'wait=60' },
      signal: waiting.signal,
    });
    setTimeout(() => waiting.abort(), 50);
    await expect(poll).rejects.toThrow();
    answer();
    expect((await turn(data.session_id, 1, 'wait=20')).body.data.status).toBe('completed');
  });

  test('holds a place like any run, and its session', async () => {
    const answer = heldModel();
    const { data } = (await run('first', 'respond-async')).body;
    const health = (await service.get('/health/ready')).body.data;
    expect(health.runs_in_flight).toBe(1);
    const second = run('second', 'respond-async', data.session_id);
    answer();
    expect((await second).body.data.turn).toBe(2);
    expect((await turn(data.session_id, 2, 'wait=20')).body.data.status).toBe('completed');
  });
});

describe('a turn', () => {
  test('is answered as the transcript shows it, with its tool calls', async () => {
    service.model.use([
      { tool_calls: [{ name: 'calculator', arguments: '{"expression":"6*7"}' }] },
      { text: '42' },
    ]);
    const { data } = (await run('6*7?', '')).body;
    service.model.use({ text: 'again' });
    await run('go on', '', data.session_id);
    const turns = await transcript(data.session_id);
    expect(turns).toHaveLength(2);
    for (const shown of turns)
      expect((await turn(data.session_id, shown.turn)).body.data).toEqual(shown);
  });

  test('that does not exist is told from a session that does not', async () => {
    const { data } = (await run('hi', '')).body;
    for (const number of ['2', '999999999', '0', '01', '-1', '1e0', 'x', '1234567890', '%00'])
      expectFailure(await turn(data.session_id, number), 'turn_not_found');
    expectFailure(await turn('session_01kahz1c3sf6w9m3v5q7x9z1a3', 1), 'session_not_found');
    expectFailure(await turn('x', 1), 'session_not_found');
    const stranger = await clientWith(service.url, await newKey(service.folder));
    expectFailure(
      await stranger.get(`/v1/sessions/${data.session_id}/turns/1`),
      'session_not_found',
    );
  });

  test('that has ended is not waited for, and one that goes on is told as it is when the wait is over', async () => {
    const began = performance.now();
    const { data } = (await run('hi', '')).body;
    expect((await turn(data.session_id, 1, 'wait=60')).body.data.status).toBe('completed');
    const answer = heldModel();
    await run('slow', 'respond-async', data.session_id);
    const late = await turn(data.session_id, 2, 'wait=1');
    expect([late.status, late.body.data.status]).toEqual([200, 'running']);
    expect(performance.now() - began).toBeLessThan(30_000);
    answer();
    await turn(data.session_id, 2, 'wait=20');
  });

  test('is erased with its session, also under who waits for it', async () => {
    heldModel();
    const { data } = (await run('slow', 'respond-async')).body;
    const waiting = turn(data.session_id, 1, 'wait=60');
    await service.send('DELETE', `/v1/sessions/${data.session_id}`, '');
    expectFailure(await waiting, 'session_erased');
    expectFailure(await turn(data.session_id, 1), 'session_erased');
  });
});
