import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import type { ChatRequest } from '../../../shared/sessions/turns/chat.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';
import { eventually } from '../../support/processes/operator.ts';

let service: TestService;
let agent: string;
let session: string;
/** Lets the model go on that is asked the second turn, or to judge. */
let goOn: PromiseWithResolvers<void>;

const isJudge = ({ messages }: ChatRequest): boolean => messages[0]!.content!.includes('You judge');
const says = (request: ChatRequest) => ({
  text: isJudge(request) ? 'PASS: It is.' : `${request.messages.at(-1)!.content}!`,
});

beforeAll(async () => {
  service = await startTestService(says);
  agent = await service.createAgent();
  const path = `/v1/agents/${agent}/run`;
  const { body } = await service.post(path, { input: 'One' });
  session = body.data.session_id as string;
  for (const input of ['Two', 'Three']) await service.post(path, { input, session_id: session });
}, 120_000);
beforeEach(() => void (goOn = Promise.withResolvers<void>()));
afterAll(() => service.close());

/** A replay whose model waits, in its second turn or while it judges the first; and that session. */
async function heldIn(place: 'turn' | 'judge') {
  const asked = Promise.withResolvers<void>();
  service.model.use(async (request) => {
    const last = request.messages.at(-1)!.content;
    if (place === 'judge' ? isJudge(request) : !isJudge(request) && last === 'Two') {
      asked.resolve();
      await goOn.promise;
    }
    return says(request);
  });
  const checks = [{ turn: 1, judge: { model: 'scripted', criteria: 'It is kind.' } }];
  const body = { sessions: [session], tools: 'recorded', budget: { tokens: 1_000_000 }, checks };
  const { replay_id } = (await service.post('/v1/replays', body)).body.data;
  await asked.promise;
  const made = await eventually(
    async () => (await service.get(`/v1/sessions?replay_id=${replay_id}`)).body.data as any[],
    (all) => all.some(({ status }) => status === 'running'),
  );
  const held = made.find(({ status }) => status === 'running').session_id as string;
  const ended = async () => {
    goOn.resolve();
    return eventually(
      async () => (await service.get(`/v1/replays/${replay_id}`)).body.data,
      ({ status }) => status !== 'running',
    );
  };
  return { held, ended };
}

const same = (turn: number) => expect.objectContaining({ turn, outcome: 'same' });
const PASSED = { check: 0, passed: true };

test.each(['turn', 'judge'] as const)(
  'a session of a running replay takes no run of a client, and can be forked and described (%s)',
  async (place) => {
    const { held, ended } = await heldIn(place);
    const run = { input: 'Mine', session_id: held };
    for (const headers of [{}, { prefer: 'respond-async' }]) {
      const refused = await service.post(`/v1/agents/${agent}/run`, run, headers);
      expect([refused.status, refused.body.code]).toEqual([409, 'session_of_replay']);
    }
    const early = await service.post(`/v1/sessions/${held}/fork`, { at_turn: 9 });
    expect(early.status).toBe(400);
    // It waits until the turn has ended.
    const patched = service.send('PATCH', `/v1/sessions/${held}`, { title: 'Mine' });
    const replay = await ended();
    expect(await patched).toMatchObject({ status: 200, body: { data: { title: 'Mine' } } });
    expect(replay).toMatchObject({ status: 'completed', turns: [same(1), same(2), same(3)] });
    expect(replay.turns[0].checks).toMatchObject([PASSED]);
    const fork = await service.post(`/v1/sessions/${held}/fork`, { at_turn: 1 });
    expect(fork.status).toBe(200);
    const { session_id } = fork.body.data;
    const own = await service.post(`/v1/agents/${agent}/run`, { input: 'Mine', session_id });
    expect(own.status).toBe(200);
  },
  120_000,
);

test('a turn of a replay that a client cancels has failed as cancelled, and the next ones follow', async () => {
  const { held, ended } = await heldIn('turn');
  const { status, body } = await service.post(`/v1/sessions/${held}/cancel`, {});
  expect([status, body.data]).toMatchObject([200, { turn: 2 }]);
  expect(await ended()).toMatchObject({
    status: 'completed',
    turns: [same(1), { turn: 2, outcome: 'failed', code: 'cancelled' }, { turn: 3 }],
  });
}, 120_000);

test('a judge that a client cancels has not passed, and the check says why', async () => {
  const { held, ended } = await heldIn('judge');
  expect((await service.post(`/v1/sessions/${held}/cancel`, {})).status).toBe(200);
  const { status, turns } = await ended();
  expect([status, turns]).toEqual(['completed', [same(1), same(2), same(3)]]);
  expect(turns[0].checks).toEqual([
    { check: 0, passed: false, code: 'cancelled', session_id: held },
  ]);
}, 120_000);

test('the replay of a session ends where its own session is erased, and the replay says so', async () => {
  const { held, ended } = await heldIn('turn');
  expect((await service.send('DELETE', `/v1/sessions/${held}`, '')).status).toBe(200);
  const replay = await ended();
  expect(replay).toMatchObject({ status: 'completed', sums: { sessions: { failed: 1 } } });
  expect(replay.turns).toEqual([same(1)]);
  const [row] = (await service.get(`/v1/replays/${replay.replay_id}/sessions`)).body.data;
  expect(row).toMatchObject({ status: 'failed', code: 'session_erased' });
  expect((await service.get(`/v1/sessions/${session}`)).status).toBe(200);
}, 120_000);

test('a judge whose session is erased has not passed, and the replay goes on', async () => {
  const { held, ended } = await heldIn('judge');
  expect((await service.send('DELETE', `/v1/sessions/${held}`, '')).status).toBe(200);
  const { status, turns } = await ended();
  expect([status, turns]).toEqual(['completed', [same(1), same(2), same(3)]]);
  expect(turns[0].checks).toMatchObject([{ passed: false, code: 'session_erased' }]);
}, 120_000);
