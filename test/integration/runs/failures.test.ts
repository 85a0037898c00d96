/** A failed turn: one code and one sentence wherever it is shown, and what a client should do. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { expectFailure } from '../../support/http/failures.ts';
import { startTestService, type Reply, type TestService } from '../../support/http/service.ts';
import { allEvents, openEvents } from '../../support/http/sse.ts';
import type { Script } from '../../support/fakes/scriptedModel.ts';
import type { ErrorCode } from '../../../shared/lib/errors/turnlogError.ts';

let service: TestService;
let agent: string;
beforeAll(async () => {
  service = await startTestService(undefined, {
    MODEL_MAX_RETRIES: '0',
    RUN_TIMEOUT_MS: '3000',
    RUN_WAIT_MS: '300',
  });
  agent = await service.createAgent();
});
afterAll(() => service.close());

const run = (key: string, headers: Record<string, string> = {}): Promise<Reply> =>
  service.post(`/v1/agents/${agent}/run`, { input: 'hi' }, { 'idempotency-key': key, ...headers });
const headers = () => ({ 'x-api-key': service.key, 'content-type': 'application/json' });
const lastEvent = async (path: string, init: RequestInit) =>
  (await allEvents(await openEvents(service.url + path, init))).at(-1)!;

interface Shown {
  code: string;
  message: string;
  retry: string;
}
const shownIn = ({ code, error, retry }: Reply['body']): Shown => ({
  code: code!,
  message: error!,
  retry: retry!,
});

/** The failure of a first run, and as every other response shows it. */
async function everywhere(first: Reply, key: string): Promise<Shown[]> {
  const path = first.headers.get('location')!;
  expect(path).toBe(`/v1/sessions/${first.body.session_id}/turns/${first.body.turn}`);
  const { error } = (await service.get(path)).body.data;
  const replayed = await run(key);
  expect(replayed.headers.get('idempotency-replayed')).toBe('true');
  expect(replayed.headers.get('retry-after')).toBeNull();
  expect(replayed.headers.get('location')).toBe(path);
  const background = await run(key, { prefer: 'respond-async, wait=1' });
  const followed = await lastEvent(`${path}/stream`, { headers: headers() });
  const streamed = await lastEvent(`/v1/agents/${agent}/run`, {
    method: 'POST',
    headers: { ...headers(), 'idempotency-key': key },
    body: '{"input":"hi"}',
  });
  expect([followed.event, streamed.event]).toEqual(['error', 'error']);
  expect([followed.data.session_id, streamed.data.turn]).toEqual([
    first.body.session_id,
    first.body.turn,
  ]);
  const { reason: _reason, ...inTranscript } = error;
  return [
    inTranscript,
    ...[replayed.body, background.body, followed.data, streamed.data].map(shownIn),
  ];
}

describe('a failed turn', () => {
  test.each<[ErrorCode, Script, string | null]>([
    ['model_error', { status: 400 }, null],
    ['model_overloaded', { status: 429, headers: { 'retry-after': '7' } }, '7'],
    ['model_timeout', { fault: 'never_answer' }, null],
  ])('has one code and one sentence in all responses: %s', async (code, script, retryAfter) => {
    service.model.use(script);
    const key = randomUUID();
    const first = await run(key);
    const { error, retry } = expectFailure(first, code);
    expect([retry, first.headers.get('retry-after')]).toEqual(['new_key', retryAfter]);
    expect(await everywhere(first, key)).toEqual(
      Array.from({ length: 5 }, () => ({ code, message: error, retry })),
    );
  });

  test('that was cancelled must not be run again', async () => {
    service.model.use({ fault: 'never_answer' });
    const [key, asked] = [randomUUID(), service.model.requests.length];
    const running = run(key);
    await service.model.received(asked + 1);
    const { data } = (await service.get('/v1/sessions?limit=1')).body;
    await service.post(`/v1/sessions/${data[0].session_id}/cancel`, '');
    const first = await running;
    const { error } = expectFailure(first, 'turn_interrupted');
    expect(await everywhere(first, key)).toEqual(
      Array.from({ length: 5 }, () => ({
        code: 'turn_interrupted',
        message: error,
        retry: 'never',
      })),
    );
  });
});

describe('what a client should do about a failure before a turn', () => {
  test('is never to repeat a request that is not valid or finds nothing', async () => {
    const invalid = await service.post(`/v1/agents/${agent}/run`, {});
    expect(expectFailure(invalid, 'invalid_request').retry).toBe('never');
    const missing = await service.get('/v1/agents/nobody');
    expect(expectFailure(missing, 'agent_not_found').retry).toBe('never');
    expect(missing.headers.get('location')).toBeNull();
  });

  test('is to repeat it with the same key while the first attempt still runs', async () => {
    const gate = Promise.withResolvers<void>();
    const [key, asked] = [randomUUID(), service.model.requests.length];
    service.model.use(async () => {
      await gate.promise;
      return { text: 'Hi' };
    });
    const running = run(key);
    await service.model.received(asked + 1);
    const second = await run(key);
    const { retry, session_id, turn } = expectFailure(second, 'idempotency_in_progress');
    expect([retry, turn]).toEqual(['same_key', 1]);
    expect(second.headers.get('location')).toBe(`/v1/sessions/${session_id}/turns/1`);
    gate.resolve();
    expect((await running).body.data.session_id).toBe(session_id);
  });
});
