import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { closeRebuilt } from '../../support/http/rebuiltRequests.ts';
import type { Script } from '../../support/fakes/scriptedModel.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';
import type { SessionEvent } from '../../../shared/sessions/events.ts';
import {
  comparisonsIn,
  endOf,
  eventsOf,
  startReplayOf,
  type Asked,
} from '../../support/builders/replays.ts';

const says: Script = ({ messages }) => ({
  text: `${messages.length}: ${messages.at(-1)?.content}`,
});

let service: TestService;
beforeAll(async () => {
  service = await startTestService(says);
}, 120_000);
beforeEach(() => service.model.use(says));
afterAll(() => closeRebuilt(service));

/** A session of the agent, a turn for each input. */
async function session(agent: string, inputs: readonly string[]): Promise<string> {
  let session_id: string | undefined;
  for (const input of inputs) {
    const { body } = await service.post(`/v1/agents/${agent}/run`, {
      input,
      ...(session_id && { session_id }),
    });
    session_id = body.data.session_id as string;
  }
  return session_id!;
}

/** What became of the turns, and how the replay of the session ended. */
async function replayOf(session_id: string, settings: Omit<Asked, 'sessions'> = {}) {
  const id = await startReplayOf(service.folder, { sessions: [session_id], ...settings });
  const told = await endOf(service.folder, id);
  const made = told.made.get(session_id);
  return {
    ended: told.events.find(({ type }) => type === 'replay.session_ended.v1')?.data,
    status: told.events.at(-1)!.data,
    turns: comparisonsIn(told),
    made,
    events: made === undefined ? [] : await eventsOf(service.folder, made),
  };
}

const calledIn = (events: readonly SessionEvent[]) =>
  events.flatMap(({ type, data }) => (type === 'session.tool_called.v1' ? [data] : []));

/** Calls the tool once a turn, with these arguments, and then says what it was told. */
const calls = (args: string, name = 'calculator') =>
  service.model.use(({ messages }) => {
    const last = messages.at(-1)!;
    return last.role === 'tool'
      ? { text: `told: ${last.content}` }
      : { text: null, tool_calls: [{ name, arguments: args }] };
  });
const ONE = '{"expression":"1+1"}';
const OTHER = '{"expression":"20+22"}';

test('a session is replayed in one of its own, which says so, with the same requests and answers', async () => {
  const agent = await service.createAgent();
  const recorded = await session(agent, ['One?', 'Two? 😀', 'Three?']);
  const before = await eventsOf(service.folder, recorded);
  const asked = service.model.bodies.slice(-3);
  const id = await startReplayOf(service.folder, { sessions: [recorded] });
  const told = await endOf(service.folder, id);
  expect(told.events.at(-1)).toMatchObject({ data: { status: 'completed' } });
  expect(comparisonsIn(told)).toMatchObject(
    [1, 2, 3].map((turn) => ({ turn, replay_turn: turn, outcome: 'same', requests: 'same' })),
  );
  const replayed = await eventsOf(service.folder, told.made.get(recorded)!);
  expect(replayed[0]).toMatchObject({
    type: 'session.started.v1',
    data: { agent_id: agent, replay: { replay_id: id, session_id: recorded, role: 'replay' } },
  });
  expect(service.model.bodies.slice(-3)).toEqual(asked);
  expect(await eventsOf(service.folder, recorded)).toEqual(before);
}, 60_000);

test('ids of tool calls that the model draws anew change no request', async () => {
  const drawn = (prefix: string) =>
    service.model.use(({ messages }) => {
      const last = messages.at(-1)!;
      if (last.role === 'tool') return { text: 'done' };
      const call = (id: string, args: string) => ({
        id: `${prefix}_${id}`,
        name: 'calculator',
        arguments: args,
      });
      return { text: null, tool_calls: [call('1', ONE), call('2', OTHER)] };
    });
  drawn('first');
  const recorded = await session(await service.createAgent({ tool: 'calculator' }), ['a', 'b']);
  drawn('second');
  for (const tools of ['recorded', 'live'] as const) {
    const { turns, events } = await replayOf(recorded, { tools });
    expect(turns).toMatchObject([
      { outcome: 'same', requests: 'same' },
      { outcome: 'same', requests: 'same' },
    ]);
    expect(calledIn(events).map(({ call_id }) => call_id)).toEqual(
      [0, 1].flatMap(() => ['first_1', 'first_2']),
    );
  }
}, 60_000);

test('a tool call that is not recorded ends the replay of its session, where the policy says so', async () => {
  calls(ONE);
  const recorded = await session(await service.createAgent({ tool: 'calculator' }), ['a', 'b']);
  calls(OTHER);
  const { ended, status, turns, events } = await replayOf(recorded);
  expect(ended).toMatchObject({ status: 'stopped', code: 'tool_not_recorded' });
  expect(status).toEqual({ status: 'completed' });
  expect(turns).toMatchObject([{ turn: 1, outcome: 'failed', code: 'tool_not_recorded' }]);
  expect(calledIn(events)).toMatchObject([{ replayed: 'missing', is_error: true }]);
}, 60_000);

test('or is answered by the tool itself, or by an error that the model is told', async () => {
  calls(ONE);
  const recorded = await session(await service.createAgent({ tool: 'calculator' }), ['a', 'b']);
  calls(OTHER);
  const live = await replayOf(recorded, { missing_tools: 'live' });
  expect(live.ended).toMatchObject({ status: 'completed' });
  expect(calledIn(live.events)).toMatchObject(
    ['42', '42'].map((result) => ({ replayed: 'live', result, is_error: false })),
  );
  const told = await replayOf(recorded, { missing_tools: 'error-result' });
  expect(told.turns).toMatchObject([
    { outcome: 'changed', tools: { unanswered: 1 } },
    { outcome: 'changed', tools: { unanswered: 1 } },
  ]);
  expect(calledIn(told.events)).toMatchObject([{ replayed: 'missing' }, { replayed: 'missing' }]);
}, 60_000);

test('each turn runs with the agent as it was then, also when it was changed and deleted since', async () => {
  const agent = await service.createAgent({ instruction: 'First.' });
  const recorded = await session(agent, ['a']);
  await service.send('PATCH', `/v1/agents/${agent}`, { instruction: 'Second.' });
  await service.post(`/v1/agents/${agent}/run`, { input: 'b', session_id: recorded });
  await service.send('DELETE', `/v1/agents/${agent}`, '');
  const asked = service.model.bodies.slice(-2);
  const { turns } = await replayOf(recorded);
  expect(turns).toMatchObject([{ outcome: 'same' }, { outcome: 'same' }]);
  expect(service.model.bodies.slice(-2)).toEqual(asked);
}, 60_000);

test('another model, instruction or agent takes the place of what was recorded', async () => {
  const recorded = await session(await service.createAgent({ temperature: 0.5 }), ['a', 'b']);
  const other = await service.createAgent({ instruction: 'Other.', temperature: 1 });
  const last = () => service.model.requests.at(-1)!;
  await replayOf(recorded, { model: 'narrow' });
  expect(last()).toMatchObject({ model: 'narrow', max_completion_tokens: 50, temperature: 0.5 });
  const { events } = await replayOf(recorded, { instruction: 'Be long.' });
  expect(last()).toMatchObject({ model: 'scripted-upstream', temperature: 0.5 });
  expect(last().messages[0]).toEqual({ role: 'system', content: 'Be long.' });
  expect(events[0]).toMatchObject({ data: { instruction: 'Be long.' } });
  await replayOf(recorded, { agent_id: other, agent_revision: 0 });
  expect(last()).toMatchObject({ temperature: 1, messages: [{ content: 'Other.' }, {}, {}, {}] });
}, 60_000);

test('a session that a replay made is replayed with what it ran with, also one of a judge', async () => {
  const recorded = await session(await service.createAgent({ model: 'narrow' }), ['a']);
  service.model.use((request) => {
    const isJudge = request.messages[0]!.content!.includes('You judge');
    return { text: isJudge ? 'PASS: It is.' : `${request.messages.length}` };
  });
  const checks = JSON.stringify([{ judge: { model: 'scripted', criteria: 'It is short.' } }]);
  const first = await replayOf(recorded, {
    model: 'scripted',
    instruction: 'Be long.',
    checks,
  });
  const judge = first.turns[0]!.checks[0]!.session_id!;
  for (const [made, instruction] of [
    [first.made!, 'Be long.'],
    [judge, expect.stringContaining('You judge')],
  ] as const) {
    const { turns } = await replayOf(made);
    expect(turns).toMatchObject([
      { outcome: 'same', requests: 'same', replayed: { model: 'scripted' } },
    ]);
    const { model, messages } = service.model.requests.at(-1)!;
    expect({ model, instruction: messages[0]!.content }).toEqual({
      model: 'scripted-upstream',
      instruction,
    });
  }
}, 60_000);

test('a turn whose prompt does not fit the model has failed, says so, and the next one follows', async () => {
  const recorded = await session(await service.createAgent(), ['a', 'long '.repeat(2_000), 'c']);
  service.model.use(({ messages }) => ({ text: `${messages.length}` }));
  const checks = JSON.stringify([{ matches: '.' }]);
  const { turns, ended, made } = await replayOf(recorded, { model: 'narrow', checks });
  expect(ended).toMatchObject({ status: 'completed' });
  expect(turns).toMatchObject([
    { turn: 1, replay_turn: 1, outcome: 'changed', checks: [{ passed: true }] },
    { turn: 2, outcome: 'failed', code: 'invalid_request', checks: [{ code: 'no_answer' }] },
    { turn: 3, replay_turn: 2, outcome: 'changed', checks: [{ passed: true }] },
  ]);
  expect(turns[1]).not.toHaveProperty('replay_turn');
  expect((await service.get(`/v1/sessions/${made}`)).body.data.turns).toHaveLength(2);
}, 60_000);

test('nothing more is begun once the tokens are used', async () => {
  const recorded = await session(await service.createAgent(), ['a', 'b', 'c']);
  const { turns, status, ended } = await replayOf(recorded, { budget_tokens: 1 });
  expect(turns).toMatchObject([{ turn: 1, outcome: 'same' }]);
  expect(status).toEqual({ status: 'budget_exhausted' });
  expect(ended).toBeUndefined();
}, 60_000);

test('a session that is gone keeps no other from being replayed', async () => {
  const agent = await service.createAgent();
  const [gone, whole] = [await session(agent, ['a']), await session(agent, ['b'])];
  expect((await service.send('DELETE', `/v1/sessions/${gone}`, '')).status).toBe(200);
  const id = await startReplayOf(service.folder, { sessions: [gone, whole] });
  const { events } = await endOf(service.folder, id);
  const ends = events.flatMap((event) =>
    event.type === 'replay.session_ended.v1' ? [event.data] : [],
  );
  expect(ends.toSorted((a, b) => a.status.localeCompare(b.status))).toMatchObject([
    { session_id: whole, status: 'completed' },
    { session_id: gone, status: 'failed', code: 'session_erased' },
  ]);
}, 60_000);

test('the session of a replay takes no other runs', async () => {
  const agent = await service.createAgent();
  const { made } = await replayOf(await session(agent, ['a']));
  const { status, body } = await service.post(`/v1/agents/${agent}/run`, {
    input: 'b',
    session_id: made,
  });
  expect({ status, code: body.code }).toEqual({ status: 409, code: 'session_of_replay' });
}, 60_000);

test('a model that has too much to do is waited for', async () => {
  const recorded = await session(await service.createAgent(), ['a', 'b']);
  let busy = 3;
  service.model.use((request, index) => {
    busy -= 1;
    if (busy >= 0) return { status: 503 };
    return typeof says === 'function' ? says(request, index) : { text: '' };
  });
  const { turns, ended } = await replayOf(recorded);
  expect(ended).toMatchObject({ status: 'completed' });
  expect(turns).toMatchObject([{ outcome: 'same' }, { outcome: 'same' }]);
}, 60_000);
