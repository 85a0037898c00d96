/** Cancelling what runs: the record, the run's client, its model, its tools, and what comes late. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { expectFailure } from '../../support/http/failures.ts';
import { startTestService, type Reply, type TestService } from '../../support/http/service.ts';
import { clientWith, newKey } from '../../support/processes/operator.ts';

/**
 * From the request to the model's closed connection, on a machine with other things to do; a second
 * is promised (test/faults/cancel.test.ts, at full size), and the model takes far longer by itself.
 */
const SOON_MS = 4_000;

let service: TestService;
let agent: string;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());
beforeEach(async () => {
  service.model.use({ fault: 'never_answer' });
  agent = await service.createAgent({ tool: 'calculator' });
});

const run = (input: string, session_id?: string, prefer = ''): Promise<Reply> =>
  service.post(
    `/v1/agents/${agent}/run`,
    { input, ...(session_id && { session_id }) },
    prefer === '' ? {} : { prefer },
  );
const begin = async (session_id?: string): Promise<string> =>
  (await run('slow', session_id, 'respond-async')).body.data.session_id as string;
const cancel = (session: string, body: unknown = ''): Promise<Reply> =>
  service.post(`/v1/sessions/${session}/cancel`, body);
const turns = async (session: string) =>
  (await service.get(`/v1/sessions/${session}`)).body.data.turns as Record<string, unknown>[];

test('an open turn is recorded as cancelled, and its model is left within a second', async () => {
  const { abandonedSoFar, requests, received, abandoned } = service.model;
  const [before, asked] = [abandonedSoFar(), requests.length];
  const session = await begin();
  await received(asked + 1);
  const began = performance.now();
  const { status, body } = await cancel(session);
  expect([status, body.data]).toEqual([
    200,
    { session_id: session, turn: 1, status: 'interrupted', cancelled: true },
  ]);
  await abandoned(before + 1);
  expect(performance.now() - began).toBeLessThan(SOON_MS);
  expect(await turns(session)).toEqual([
    expect.objectContaining({
      status: 'interrupted',
      error: {
        code: 'turn_interrupted',
        reason: 'cancelled',
        message: 'The turn was cancelled.',
        retry: 'never',
      },
    }),
  ]);
  const events = (await service.get(`/v1/sessions/${session}/events`)).body.data;
  expect(events.at(-1)).toMatchObject({
    type: 'session.turn_interrupted.v1',
    data: { turn: 1, reason: 'cancelled' },
  });
  expect(events.at(-1).data).not.toHaveProperty('cause');
});

test('the run’s client is told at once that it was cancelled, and who waits for the turn, too', async () => {
  const session = await begin();
  await cancel(session);
  const asked = service.model.requests.length;
  const running = run('slow', session);
  await service.model.received(asked + 1);
  const waiting = service.get(`/v1/sessions/${session}/turns/2`, { prefer: 'wait=60' });
  const began = performance.now();
  await cancel(session, { turn: 2 });
  const cancelled = await running;
  expect(expectFailure(cancelled, 'turn_interrupted').error).toBe('The turn was cancelled.');
  // Nothing that sends again what it is told to must bring it back.
  expect(cancelled.headers.get('retry-after')).toBeNull();
  expect((await waiting).body.data.error.reason).toBe('cancelled');
  expect(performance.now() - began).toBeLessThan(SOON_MS);
});

test('the session goes on with the next run, whose prompt has nothing of the cancelled turn', async () => {
  const session = await begin();
  await cancel(session);
  service.model.use({ text: 'Hello.' });
  expect((await run('again', session)).status).toBe(200);
  expect(service.model.requests.at(-1)!.messages.map(({ content }) => content)).toEqual([
    'Be brief.',
    'again',
  ]);
});

test('what the model answers after all is dropped', async () => {
  const { promise, resolve: answer } = Promise.withResolvers<void>();
  const { promise: cancelled, resolve: end } = Promise.withResolvers<void>();
  const asked = service.model.requests.length;
  service.model.use(async () => {
    // Further calls wait: the turn is not to fail for their number before it is cancelled.
    await (service.model.requests.length > asked + 1 ? cancelled : promise);
    return { tool_calls: [{ name: 'calculator', arguments: '{"expression":"1+1"}' }] };
  });
  const session = await begin();
  await service.model.received(asked + 1);
  const cancelling = cancel(session);
  answer();
  await cancelling;
  end();
  await service.get(`/v1/sessions/${session}/turns/1`, { prefer: 'wait=20' });
  const types = (await service.get(`/v1/sessions/${session}/events`)).body.data.map(
    ({ type }: { type: string }) => type,
  );
  expect(types.at(-1)).toBe('session.turn_interrupted.v1');
  expect(types.filter((type: string) => type.includes('turn_completed'))).toEqual([]);
});

describe('cancelling', () => {
  test('again, and what has ended, changes nothing and says how it ended', async () => {
    const session = await begin();
    const first = await cancel(session);
    for (const body of ['', {}, { turn: 1 }])
      expect((await cancel(session, body)).body).toEqual(first.body);
    service.model.use({ text: 'Hello.' });
    await run('next', session);
    const length = (await service.get(`/v1/sessions/${session}/events`)).body.data.length;
    expect((await cancel(session)).body.data).toEqual({
      session_id: session,
      turn: 2,
      status: 'completed',
      cancelled: false,
    });
    expect((await cancel(session, { turn: 1 })).body).toEqual(first.body);
    expect((await service.get(`/v1/sessions/${session}/events`)).body.data).toHaveLength(length);
  });

  test('a turn by its number never hits a later one', async () => {
    service.model.use({ text: 'Hello.' });
    const session = (await run('first')).body.data.session_id as string;
    service.model.use({ fault: 'never_answer' });
    await begin(session);
    const late = await cancel(session, { turn: 1 });
    expect(late.body.data).toMatchObject({ turn: 1, status: 'completed', cancelled: false });
    expect((await turns(session)).map(({ status }) => status)).toEqual(['completed', 'running']);
    expectFailure(await cancel(session, { turn: 3 }), 'turn_not_found');
    await cancel(session, { turn: 2 });
  });

  test('by many at once records one end', async () => {
    const session = await begin();
    const answers = await Promise.all(Array.from({ length: 20 }, () => cancel(session)));
    expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1);
    expect((await service.get(`/v1/sessions/${session}/events`)).body.data).toHaveLength(3);
  });

  test('a session of another account, or of nobody, is the same 404, and an erased one is gone', async () => {
    const session = await begin();
    const stranger = await clientWith(service.url, await newKey(service.folder));
    expectFailure(await stranger.post(`/v1/sessions/${session}/cancel`, ''), 'session_not_found');
    expectFailure(await cancel('session_01kahz1c3sf6w9m3v5q7x9z1a3'), 'session_not_found');
    expectFailure(await cancel('x'), 'session_not_found');
    expect((await turns(session)).at(-1)!['status']).toBe('running');
    await service.send('DELETE', `/v1/sessions/${session}`, '');
    expectFailure(await cancel(session), 'session_erased');
  });

  test.each([
    [{ turn: 0 }, 'invalid_request'],
    [{ turn: '1' }, 'invalid_request'],
    [{ other: 1 }, 'invalid_request'],
    ['[]', 'invalid_request'],
    ['{', 'invalid_json'],
  ] as const)('with the body %j is %s', async (body, code) => {
    expectFailure(await cancel('session_01kahz1c3sf6w9m3v5q7x9z1a3', body), code);
  });
});
