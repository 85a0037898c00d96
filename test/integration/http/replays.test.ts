import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { Scope } from '../../../shared/accounts/events.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { clientWith, eventually, newKey } from '../../support/processes/operator.ts';
import { expectFailure } from '../../support/http/failures.ts';
import { startTestService, type Reply, type TestService } from '../../support/http/service.ts';

const NO_SESSION = 'session_01kahz1c3sf6w9m3v5q7x9z1a3';
const BUDGET = { tokens: 1_000_000 };
const RECORDED = { tools: 'recorded', budget: BUDGET };

let service: TestService;
let agent: string;

beforeAll(async () => {
  service = await startTestService();
  agent = await service.createAgent({ tool: 'calculator' });
});
afterEach(() => service.model.use({ text: 'Hello.' }));
afterAll(() => service.close());

async function recorded(...inputs: string[]): Promise<string> {
  let session_id: string | undefined;
  for (const input of inputs) {
    const body = { input, ...(session_id && { session_id }) };
    const { data } = (await service.post(`/v1/agents/${agent}/run`, body)).body;
    session_id = data.session_id as string;
  }
  return session_id!;
}

async function start(body: object): Promise<string> {
  const reply = await service.post('/v1/replays', { ...RECORDED, ...body });
  expect(reply).toMatchObject({ status: 202, body: { success: true } });
  expect(reply.headers.get('location')).toBe(`/v1/replays/${reply.body.data.replay_id}`);
  return reply.body.data.replay_id as string;
}

async function ended(replayId: string, query = ''): Promise<any> {
  const read = async (asked = '') =>
    (await service.get(`/v1/replays/${replayId}${asked}`)).body.data;
  await eventually(read, ({ status }) => status !== 'running');
  return read(query);
}

const listed = async (query = ''): Promise<string[]> =>
  (await service.get(`/v1/sessions${query}`)).body.data.map(
    ({ session_id }: { session_id: string }) => session_id,
  );

describe('a replay', () => {
  test('runs a session again in a session of its own, which is listed apart and says so', async () => {
    const session = await recorded('One?', 'Two?');
    // Tools and budget have defaults.
    const replayId = await start({ sessions: [session], tools: undefined, budget: undefined });
    const replay = await ended(replayId);
    expect(replay).toMatchObject({
      status: 'completed',
      settings: { tools: 'recorded', missing_tools: 'stop', concurrency: 1, budget: BUDGET },
      sums: {
        sessions: { total: 1, completed: 1 },
        turns: { total: 2, same: 2, changed: 0, failed: 0, skipped: 0 },
        requests: { same: 2, changed: 0 },
        checks: { passed: 0, failed: 0 },
      },
      turns: [
        { session_id: session, turn: 1, outcome: 'same', requests: 'same', checks: [] },
        { session_id: session, turn: 2, outcome: 'same', requests: 'same', checks: [] },
      ],
    });
    const { replay_session_id } = replay.turns[0];
    expect(await listed('?limit=1000')).not.toContain(replay_session_id);
    expect(await listed(`?replay_id=${replayId}`)).toEqual([replay_session_id]);
    const made = (await service.get(`/v1/sessions/${replay_session_id}`)).body.data;
    expect(made.replay).toEqual({ replay_id: replayId, session_id: session });
    expect((await service.get(`/v1/sessions/${session}`)).body.data).not.toHaveProperty('replay');
    expect((await service.get(`/v1/replays/${replayId}/sessions`)).body.data).toEqual([
      { session_id: session, replay_session_id, turns: 2, status: 'completed', code: null },
    ]);
  });

  test('shows what differs, by outcome, and says where the texts are erased', async () => {
    service.model.use([{ text: 'The sum is four.' }, { text: 'Bye.' }]);
    const session = await recorded('2+2?', 'Bye!');
    service.model.use([{ text: 'The sum is five.' }, { text: 'Bye.' }]);
    const replayId = await start({ sessions: [session], instruction: 'Be wrong.' });
    const changed = await ended(replayId, '?only=changed');
    expect(changed.sums.turns).toMatchObject({ same: 1, changed: 1 });
    expect(changed.settings.instruction).toBe('Be wrong.');
    expect(changed.turns).toMatchObject([
      {
        turn: 1,
        outcome: 'changed',
        requests: 'changed',
        diff: [
          { op: 'same', text: 'The sum is ' },
          { op: 'removed', text: 'four' },
          { op: 'added', text: 'five' },
          { op: 'same', text: '.' },
        ],
      },
    ]);
    expect((await ended(replayId, '?only=failed')).turns).toEqual([]);
    expect((await ended(replayId, `?session_id=${session}`)).turns).toHaveLength(2);
    expect((await ended(replayId, `?session_id=${NO_SESSION}`)).turns).toEqual([]);
    await service.send('DELETE', `/v1/sessions/${changed.turns[0].replay_session_id}`, '');
    const [gone] = (await ended(replayId, '?only=changed')).turns;
    expect(gone).toMatchObject({ outcome: 'changed', diff_omitted: 'erased' });
    expect(gone).not.toHaveProperty('diff');
  });

  test('pages its turns', async () => {
    const sessions = [await recorded('a', 'b'), await recorded('c')];
    const replayId = await start({ sessions, concurrency: 2 });
    await ended(replayId);
    const seen: [string, number][] = [];
    let path: string | undefined = `/v1/replays/${replayId}?limit=2`;
    for (let pages = 0; path !== undefined; pages += 1) {
      const reply: Reply = await service.get(path);
      seen.push(...reply.body.data.turns.map((of: any) => [of.session_id, of.turn]));
      path = /<([^>]+)>/.exec(reply.headers.get('link') ?? '')?.[1];
      expect(pages).toBeLessThan(3);
    }
    expect(seen).toEqual([
      [sessions[0], 1],
      [sessions[0], 2],
      [sessions[1], 1],
    ]);
  });

  test('is not started with a check of a turn that is not replayed', async () => {
    const session = await recorded('Hi?');
    const checks = [{ contains: 'Hello' }, { turn: 2, contains: 'Hello' }];
    const refused = await service.post('/v1/replays', { ...RECORDED, sessions: [session], checks });
    expectFailure(refused, 'invalid_request');
    expect(refused.body.details).toEqual({
      'checks/1/turn': {
        message: '"checks/1/turn" must be a turn that is replayed.',
        path: '/checks/1/turn',
      },
    });
  });

  test('makes the checks, of a judge in a session of its own', async () => {
    const session = await recorded('Hi?');
    service.model.use(({ messages }) => {
      const isJudge = JSON.stringify(messages).includes('You judge');
      return { text: isJudge ? 'FAIL: It is too short.' : 'Hello.' };
    });
    const checks = [
      { equals: 'Hello.' },
      { matches: '^\\d+$' },
      { judge: { model: 'scripted', criteria: 'It is long.' } },
    ];
    const replayId = await start({ sessions: [session], checks });
    const replay = await ended(replayId, '?only=checks_failed');
    expect(replay.settings.checks).toEqual(checks);
    expect(replay.sums.checks).toEqual({ passed: 1, failed: 2 });
    expect(replay.sums.judge_tokens).toBeGreaterThan(0);
    const [{ checks: results }] = replay.turns;
    expect(results).toMatchObject([
      { check: 0, passed: true },
      { check: 1, passed: false },
      { check: 2, passed: false },
    ]);
    const judge = (await service.get(`/v1/sessions/${results[2].session_id}`)).body.data;
    expect(judge.turns).toMatchObject([{ output: 'FAIL: It is too short.' }]);
    expect(JSON.parse(judge.turns[0].input)).toEqual({
      criteria: 'It is long.',
      input: 'Hi?',
      output: 'Hello.',
    });
    expect(await listed('?limit=1000')).not.toContain(results[2].session_id);
  });

  test('takes the sessions that a filter finds', async () => {
    const session = await recorded('Labelled');
    await service.send('PATCH', `/v1/sessions/${session}`, { labels: { set: 'golden' } });
    const filter = { label: ['set:golden'] };
    const replay = await ended(await start({ filter }));
    expect(replay.turns.map(({ session_id }: any) => session_id)).toEqual([session]);

    const named = await recorded('Named');
    const both = await ended(await start({ sessions: [named, session], filter }));
    const taken = both.turns.map(({ session_id }: any) => session_id);
    expect(taken.toSorted()).toEqual([session, named].toSorted());
  });

  test('takes all that the list shows where it is told of none', async () => {
    const { body } = await service.get('/v1/sessions?limit=1000');
    const replayId = await start({});
    const { data } = (await service.get(`/v1/replays/${replayId}`)).body;
    expect(data.sums.sessions.total).toBe(body.data.length);
    await service.post(`/v1/replays/${replayId}/cancel`, {});
  });

  test('is listed with its replacements, but without the text of its instruction', async () => {
    const session = await recorded('One?');
    const replaced = { agent_id: agent, agent_revision: 0, model: 'scripted' };
    const plain = await start({ sessions: [session] });
    const changed = await start({ sessions: [session], ...replaced, instruction: 'Be wrong.' });
    const { data } = (await service.get('/v1/replays?limit=2')).body;
    expect(data).toMatchObject([
      { replay_id: changed, replacements: { ...replaced, instruction: true } },
      { replay_id: plain, replacements: { instruction: false } },
    ]);
    expect(JSON.stringify(data)).not.toContain('Be wrong.');
    expect((await ended(changed)).replacements).toEqual({ ...replaced, instruction: true });
  });

  test('is cancelled, and then stays as it is', async () => {
    const session = await recorded('One?', 'Two?');
    service.model.use({ text: 'Late.', delay_ms: 60_000 });
    const replayId = await start({ sessions: [session] });
    const cancel = () => service.post(`/v1/replays/${replayId}/cancel`, {});
    expect((await cancel()).body.data).toMatchObject({ replay_id: replayId, status: 'cancelled' });
    expect((await cancel()).body.data.status).toBe('cancelled');
    expect((await ended(replayId)).sums.turns.same).toBe(0);
  });

  test('shows a turn that is done while the next one runs, and keeps it when it is cancelled', async () => {
    const session = await recorded('One?', 'Two?');
    service.model.use(({ messages }) =>
      messages.at(-1)!.content === 'Two?' ? { fault: 'never_answer' } : { text: 'Hello.' },
    );
    const replayId = await start({ sessions: [session] });
    const read = async () => (await service.get(`/v1/replays/${replayId}`)).body.data;
    const { status, sums } = await eventually(read, (replay) => replay.sums.turns.same > 0);
    expect(status).toBe('running');
    await service.post(`/v1/replays/${replayId}/cancel`, {});
    expect(await ended(replayId)).toMatchObject({ status: 'cancelled', sums });
    const shown = (await service.get(`/v1/replays/${replayId}/sessions`)).body.data;
    expect(shown).toMatchObject([{ session_id: session, status: 'cancelled', code: null }]);
    expect(sums.replayed.tokens.total).toBeGreaterThan(0);
  });

  test('shows sessions that its tokens did not suffice for as such, and others as they ended', async () => {
    const sessions = [
      await recorded('One?'),
      await recorded('Two?', 'Three?'),
      await recorded('x'),
    ];
    const replayId = await start({ sessions, budget: { tokens: 1 } });
    expect((await ended(replayId)).status).toBe('budget_exhausted');
    const shown = (await service.get(`/v1/replays/${replayId}/sessions`)).body.data;
    expect(shown.map(({ status }: any) => status)).toEqual([
      'completed',
      'budget_exhausted',
      'budget_exhausted',
    ]);
  });

  test('that is started again with the same key is the same one', async () => {
    const body = { ...RECORDED, sessions: [await recorded('Once')] };
    const again = { 'idempotency-key': 'replay-once' };
    const first = await service.post('/v1/replays', body, again);
    const second = await service.post('/v1/replays', body, again);
    expect(second.status).toBe(202);
    expect(second.body.data).toEqual(first.body.data);
    expect(second.headers.get('idempotency-replayed')).toBe('true');
    await ended(first.body.data.replay_id as string);
    const replays = (await service.get('/v1/replays?limit=1000')).body.data;
    const ids = replays.map(({ replay_id }: any) => replay_id);
    expect(ids.filter((id: string) => id === first.body.data.replay_id)).toHaveLength(1);
    expect(ids).toEqual(ids.toSorted().toReversed());
  });
});

test('is started and cancelled by who may run agents, and seen by who may read sessions', async () => {
  const session = await recorded('Scoped');
  const body = { ...RECORDED, sessions: [session] };
  const replayId = await start({ sessions: [session] });
  const { account_id } = (await service.get(`/v1/sessions/${session}/events`)).body.data[0]
    .metadata;
  const keyFor = async (scopes: Scope[]) =>
    clientWith(service.url, await newKey(service.folder, { account: account_id, scopes }));
  const reader = await keyFor(['sessions:read']);
  const runner = await keyFor(['agents:run']);
  for (const refused of [
    await reader.post('/v1/replays', body),
    await reader.post(`/v1/replays/${replayId}/cancel`, {}),
    await runner.get('/v1/replays'),
    await runner.get(`/v1/replays/${replayId}`),
    await runner.get(`/v1/replays/${replayId}/sessions`),
    await runner.get(`/v1/replays/${replayId}/stream`),
  ])
    expect([refused.status, refused.body.code]).toEqual([403, 'forbidden']);
  expect((await reader.get(`/v1/replays/${replayId}`)).status).toBe(200);
  expect((await runner.post(`/v1/replays/${replayId}/cancel`, {})).status).toBe(200);
});

describe('what can not be replayed', () => {
  test.each<[string, () => Promise<object> | object, readonly [number, string, string]]>([
    [
      'an unknown session',
      () => ({ sessions: [NO_SESSION] }),
      [404, 'session_not_found', 'sessions/0'],
    ],
    [
      'an erased session',
      async () => {
        const session = await recorded('Gone');
        await service.send('DELETE', `/v1/sessions/${session}`, '');
        return { sessions: [await recorded('Here'), session] };
      },
      [410, 'session_erased', 'sessions/1'],
    ],
    [
      'an end before its beginning',
      () => ({ turns: { from: 5, up_to: 3 } }),
      [400, 'invalid_request', 'turns/up_to'],
    ],
    [
      'a filter that finds nothing',
      () => ({ filter: { label: ['set:none'] } }),
      [404, 'session_not_found', 'filter'],
    ],
    [
      'a filter that is unknown',
      () => ({ filter: { limit: 3 } }),
      [400, 'invalid_request', 'filter/limit'],
    ],
    [
      'an unknown model',
      async () => ({ sessions: [await recorded('x')], model: 'other' }),
      [400, 'model_not_supported', 'model'],
    ],
    [
      'an unknown model of a judge',
      async () => ({
        sessions: [await recorded('x')],
        checks: [{ judge: { model: 'other', criteria: 'c' } }],
      }),
      [400, 'invalid_request', 'checks/0/judge/model'],
    ],
    [
      'a pattern that is none',
      async () => ({
        sessions: [await recorded('x')],
        checks: [{ equals: 'a' }, { matches: '(' }],
      }),
      [400, 'invalid_request', 'checks/1/matches'],
    ],
    [
      'too many checks',
      async () => ({
        sessions: [await recorded('x')],
        checks: Array.from({ length: LIMITS.replays.checks + 1 }, () => ({ equals: 'a' })),
      }),
      [400, 'invalid_request', 'checks'],
    ],
    [
      'checks that are too long together',
      async () => ({
        sessions: [await recorded('x')],
        checks: Array.from({ length: 5 }, () => ({
          equals: 'a'.repeat(LIMITS.replays.checkChars),
        })),
      }),
      [400, 'invalid_request', 'checks'],
    ],
  ])('%s', async (_name, body, [status, code, field]) => {
    const reply = await service.post('/v1/replays', { ...RECORDED, ...(await body()) });
    expect(reply).toMatchObject({ status, body: { code } });
    expect(Object.keys(reply.body.details ?? {})).toContain(field);
  });

  test("is another account's, and it is refused as one that does not exist", async () => {
    const session = await recorded('Mine');
    const stranger = await clientWith(service.url, await newKey(service.folder));
    const refusal = async (id: string) => {
      const { request_id: _, ...body } = (
        await stranger.post('/v1/replays', { ...RECORDED, sessions: [id] })
      ).body;
      return body;
    };
    expect(await refusal(session)).toEqual(await refusal(NO_SESSION));
    expect((await stranger.get('/v1/replays')).body.data).toEqual([]);
  });
});
