import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { exported, linesOf } from '../../support/http/exported.ts';
import { echo, forking, inputsOf } from '../../support/http/forking.ts';
import { closeRebuilt, rebuiltRequests } from '../../support/http/rebuiltRequests.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';
import { eventually } from '../../support/processes/operator.ts';
import { rebuiltByPython } from '../../support/processes/recipes/rebuildRequests.ts';

let service: TestService;
let agent: string;
let does: ReturnType<typeof forking>;
beforeAll(async () => {
  service = await startTestService(echo);
  agent = await service.createAgent();
  does = forking(service);
}, 120_000);
afterAll(() => closeRebuilt(service));

/** Replays one session to its end; resolves with the replay and the session that it made. */
async function replayed(session: string, settings: object = {}) {
  const body = {
    tools: 'recorded',
    budget: { tokens: 1_000_000 },
    sessions: [session],
    ...settings,
  };
  const { replay_id } = (await service.post('/v1/replays', body)).body.data;
  const read = async () => (await service.get(`/v1/replays/${replay_id}`)).body.data;
  const replay = await eventually(read, ({ status }) => status !== 'running');
  const [one] = (await service.get(`/v1/replays/${replay_id}/sessions`)).body.data;
  return { replay, end: one, made: one.replay_session_id as string };
}

const turnsOf = (outcome: string, ...turns: number[]) =>
  turns.map((turn) => ({ turn, replay_turn: turn, outcome, requests: outcome }));

/** What the models were asked for the own turns of a session, oldest first. */
const askedIn = async (session: string) =>
  (await rebuiltRequests(service, session)).map(({ request }) => request.messages);

test('a replay of a fork shares the turns of its origin, and asks the same', async () => {
  const origin = await does.run(agent, ['a', 'b', 'c']);
  const fork = (await does.fork(origin, 2)).session_id;
  await does.run(agent, ['d', 'e'], fork);
  const whole = await replayed(fork);
  expect(whole.replay).toMatchObject({ status: 'completed', turns: turnsOf('same', 3, 4) });
  expect([whole.replay.sums.turns, whole.end.turns]).toMatchObject([{ total: 2, same: 2 }, 2]);
  expect(await does.read(whole.made)).toMatchObject({
    forked_from: { session_id: origin, turn: 2 },
    replay: { session_id: fork },
  });
  expect(inputsOf(await does.read(whole.made))).toEqual(['1 a', '2 b', '3 d', '4 e']);
  expect(await askedIn(whole.made)).toEqual(await askedIn(fork));
  const last = await replayed(fork, { turns: { from: 4 } });
  expect(last.replay.turns).toMatchObject(turnsOf('same', 4));
  expect(last.replay.sums.turns).toMatchObject({ total: 1, same: 1 });
  expect((await does.read(last.made)).forked_from).toMatchObject({ session_id: fork, turn: 3 });
  expect(await askedIn(last.made)).toEqual(await askedIn(fork));
  const none = await replayed(fork, { turns: { up_to: 2 } });
  expect(none.replay).toMatchObject({
    status: 'completed',
    turns: [],
    sums: { turns: { total: 0 } },
  });
}, 60_000);

test('a replay with another instruction is built again with that one, by both, and exported with it', async () => {
  const origin = await does.run(agent, ['a', 'b']);
  const { made } = await replayed(origin, { turns: { from: 2 }, instruction: 'Be long.' });
  const instructions = (await askedIn(made)).map(([system]) => system!.content);
  expect(instructions).toEqual(['Be brief.', 'Be long.']);
  const { code, stdout } = await rebuiltByPython(service, made);
  expect([code, stdout]).toEqual([0, expect.stringContaining('\n1 requests, 0 of them')]);
  const path = `/v1/sessions/${made}/export?format=openai-chat`;
  const [{ messages }] = linesOf((await exported(service, path)).text);
  expect(messages.map(({ content }: { content: string }) => content)).toEqual([
    'Be brief.',
    'a',
    'answer to a',
    'Be long.',
    'b',
    'answer to b',
  ]);
}, 60_000);

test('the requests of a shared turn are those of the agent that its own session ran with', async () => {
  const other = await service.createAgent({ name: 'Other', instruction: 'Other.' });
  const origin = await does.run(agent, ['a', 'b']);
  const asked = { turns: { from: 2 }, agent_id: other, agent_revision: 0 };
  const { made } = await replayed(origin, asked);
  const instructions = (await askedIn(made)).map(([system]) => system!.content);
  expect(instructions).toEqual(['Be brief.', 'Other.']);
  const path = `/v1/sessions/${made}/export?format=otel`;
  const ids = linesOf((await exported(service, path)).text).map(
    (line) => /"gen_ai.agent.id","value":{"stringValue":"([^"]+)"/.exec(JSON.stringify(line))![1],
  );
  expect(ids).toEqual([agent, other]);
}, 60_000);

test('a fork of a replay’s session takes runs, keeps its instruction, and is replayed itself', async () => {
  const origin = await does.run(agent, ['a', 'b']);
  const { made } = await replayed(origin, { instruction: 'Be long.' });
  const fork = await does.fork(made, 2);
  expect(fork).toMatchObject({ forked_from: { session_id: made, turn: 2 } });
  expect(fork).not.toHaveProperty('replay');
  await does.run(agent, ['c', 'd'], fork.session_id);
  const further = await does.fork(fork.session_id, 4);
  await service.restart();
  await does.run(agent, ['e', 'f'], further.session_id);
  expect((await askedIn(further.session_id)).map(([system]) => system!.content)).toEqual(
    Array.from('abcdef', () => 'Be long.'),
  );
  expect((await rebuiltByPython(service, fork.session_id)).code).toBe(0);
  const again = await replayed(fork.session_id);
  expect(again.replay.turns).toMatchObject(turnsOf('same', 3, 4));
  expect(await askedIn(again.made)).toEqual(await askedIn(fork.session_id));
}, 60_000);

test('a fork whose origin is erased is not replayed, and its replay says why', async () => {
  const origin = await does.run(agent, ['a']);
  const fork = (await does.fork(origin, 1)).session_id;
  await does.run(agent, ['b'], fork);
  const before = await replayed(fork);
  await does.erase(origin);
  const { end } = await replayed(fork);
  expect(end).toMatchObject({ status: 'failed', code: 'origin_erased' });
  for (const session of [fork, before.made]) {
    const { status, body } = await service.get(`/v1/sessions/${session}/turns/2/requests`);
    expect([status, body.code]).toEqual([410, 'origin_erased']);
  }
  // Its replays go with it.
  await does.erase(fork);
}, 60_000);

test('a fork of as many forks as there may be is replayed from its own first turn on only', async () => {
  let session = await does.run(agent, ['a']);
  for (let turn = 1; turn <= 16; turn += 1) {
    const inputs = turn === 16 ? ['b', 'c'] : ['b'];
    session = await does.run(agent, inputs, (await does.fork(session, turn)).session_id);
  }
  expect((await replayed(session)).replay.turns).toMatchObject(turnsOf('same', 17, 18));
  const { end, made } = await replayed(session, { turns: { from: 18 } });
  expect(end).toMatchObject({ status: 'failed', code: 'invalid_request' });
  expect(made).toBeNull();
}, 60_000);
