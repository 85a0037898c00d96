import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { expectFailure } from '../../support/http/failures.ts';
import { echo, forking } from '../../support/http/forking.ts';
import { closeRebuilt, rebuiltRequests } from '../../support/http/rebuiltRequests.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';
import { rebuiltByPython } from '../../support/processes/recipes/rebuildRequests.ts';
import {
  ALL_KINDS,
  answerAgain,
  recordSession,
  startRecorder,
} from '../../support/builders/recordings.ts';

let service: TestService;
let does: ReturnType<typeof forking>;
beforeAll(async () => {
  service = await startTestService(echo);
  does = forking(service);
});
afterAll(() => closeRebuilt(service));

const requestsOf = (session: string, turn: number) =>
  service.get(`/v1/sessions/${session}/turns/${turn}/requests`);

/** A session of two turns, a fork of it after the first, and one of that after its own turn. */
async function forkOfFork(): Promise<{ agent: string; sessions: [string, string, string] }> {
  const agent = await service.createAgent();
  const origin = await does.run(agent, ['a', 'b']);
  const first = (await does.fork(origin, 1)).session_id;
  await does.run(agent, ['c'], first);
  const second = (await does.fork(first, 2)).session_id;
  await does.run(agent, ['d'], second);
  return { agent, sessions: [origin, first, second] };
}

test('the requests of a fork’s turns are those that were sent, and those of a shared turn its origin’s', async () => {
  const begun = service.model.bodies.length;
  const { sessions } = await forkOfFork();
  const [a, , c, d] = service.model.bodies.slice(begun).map((body) => JSON.parse(body));
  const told = await rebuiltRequests(service, sessions[2]);
  expect(told.map(({ request }) => request)).toEqual([a, c, d]);
  const shared = [await requestsOf(sessions[2], 1), await requestsOf(sessions[0], 1)];
  expect(shared[0]!.body.data).toEqual(shared[1]!.body.data);
  expectFailure(await requestsOf(sessions[1], 3), 'turn_not_found');
});

test('a fork as it stood after a turn that it shares names the event of its origin', async () => {
  const { sessions } = await forkOfFork();
  const { body } = await service.get(`/v1/sessions/${sessions[2]}?at_turn=1`);
  const events = await does.events(sessions[0]);
  const end = events.find(({ type }: { type: string }) => type === 'session.turn_completed.v1');
  expect(body.data).toMatchObject({
    session_id: sessions[2],
    turn_count: 1,
    updated_at: body.data.created_at,
    at: {
      turn: 1,
      revision: end.revision,
      hash: end.metadata.hash,
      origin_session_id: sessions[0],
    },
    turns: [{ turn: 1, input: 'a', origin_session_id: sessions[0] }],
  });
});

test('what holds turns of an origin is gone with it, and nothing else', async () => {
  const { agent, sessions } = await forkOfFork();
  const [origin, first, second] = sessions;
  const narrow = await service.createAgent({ model: 'narrow', instruction: 'Be brief.' });
  const other = await does.run(narrow, ['a']);
  const long = (await does.fork(other, 1)).session_id;
  const words = (name: string) => `${name} ${'word '.repeat(30)}`;
  await does.run(narrow, [words('b'), words('c'), words('d')], long);
  await does.erase(origin);
  await does.erase(other);
  for (const [session, turn] of [
    [first, 1],
    [first, 2],
    [second, 1],
    [second, 2],
    [second, 3],
    [long, 2],
  ] as const)
    expectFailure(await requestsOf(session, turn), 'origin_erased');
  expectFailure(await service.get(`/v1/sessions/${second}?at_turn=1`), 'origin_erased');
  expect((await requestsOf(long, 4)).body.data).toMatchObject([{ matches: true }]);
  const { code, stderr } = await rebuiltByPython(service, second);
  expect([code, stderr]).toEqual([2, expect.stringContaining('session_erased')]);
  for (const session of [first, second, long]) await does.erase(session);
  expect((await service.send('DELETE', `/v1/agents/${agent}`, '')).status).toBe(200);
});

test('summaries of an origin are found there, and what a fork sums up of it is read there, by both', async () => {
  const recorder = await startRecorder();
  try {
    const { agent, session } = await recordSession(recorder, ALL_KINDS);
    answerAgain(recorder);
    const forks = forking(recorder);
    let named = 0;
    let compactions = 0;
    for (const turn of [3, 8, 11]) {
      const fork = (await forks.fork(session, turn)).session_id;
      await forks.run(agent, ['words /0', `${'long '.repeat(60)} /2`, 'more words /1'], fork);
      const again = (await forks.fork(fork, turn + 2)).session_id;
      await forks.run(agent, ['the end /1', `${'long '.repeat(60)} /0`, 'now /0'], again);
      for (const one of [fork, again]) {
        await rebuiltRequests(recorder, one);
        const events: { type: string; data: object }[] = await forks.events(one);
        compactions += events.filter(({ type }) => type === 'session.compacted.v1').length;
        named += events.filter(({ data }) => 'summary_session_id' in data).length;
        const { code, stdout } = await rebuiltByPython(recorder, one);
        expect([code, stdout]).toEqual([
          0,
          expect.stringMatching(/\n[1-9]\d* requests, 0 of them/),
        ]);
      }
    }
    expect(Math.min(named, compactions)).toBeGreaterThan(0);
  } finally {
    await closeRebuilt(recorder);
  }
}, 120_000);
