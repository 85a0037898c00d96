import { execFile } from 'node:child_process';
import { DatabaseSync } from 'node:sqlite';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { root } from '../../support/docs/projectFiles.ts';
import { everyPage } from '../../support/http/everyPage.ts';
import { expectFailure } from '../../support/http/failures.ts';
import { everyRequestRebuilt, type ToldRequest } from '../../support/http/rebuiltRequests.ts';
import { rebuiltByPython } from '../../support/processes/recipes/rebuildRequests.ts';
import { startTestService, type Reply, type TestService } from '../../support/http/service.ts';
import { onEventStoreDb } from '../../support/stores/testStore.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

const SUM = { name: 'calculator', arguments: '{"expression":"1+1"}' };

const requestsOf = (session: string, turn: number | string, query = ''): Promise<Reply> =>
  service.get(`/v1/sessions/${session}/turns/${turn}/requests${query}`);

/** Runs a turn, and gives its session. */
async function run(agent: string, input: string, session_id?: string): Promise<string> {
  const body = { input, ...(session_id !== undefined && { session_id }) };
  await service.post(`/v1/agents/${agent}/run`, body);
  const newest = await service.get('/v1/sessions?limit=1');
  return session_id ?? (newest.body.data[0].session_id as string);
}

/** A session of three turns: two rounds, an agent that changed, a failure after a round. */
async function threeTurns(): Promise<{ agent: string; session: string }> {
  const agent = await service.createAgent({ tool: 'calculator' });
  service.model.use([{ text: 'Let me see 😀', tool_calls: [SUM] }, { text: '2\u2028' }]);
  const session = await run(agent, 'ключ "1+1"\n?');
  await service.send('PATCH', `/v1/agents/${agent}`, { instruction: 'Be long.', temperature: 0.1 });
  service.model.use({ text: 'Yes.' });
  await run(agent, 'Sure?', session);
  service.model.use([{ tool_calls: [SUM, SUM] }, { status: 400 }]);
  await run(agent, 'And again?', session);
  return { agent, session };
}

describe('the requests of a turn', () => {
  test('are those that were sent: the rounds, what was said before, and the agent as it was', async () => {
    const first = service.model.bodies.length;
    const { agent, session } = await threeTurns();
    const sent = service.model.bodies.slice(first).map((body) => JSON.parse(body));
    await service.send('PATCH', `/v1/agents/${agent}`, { instruction: 'Later.' });
    const told: ToldRequest[] = [];
    for (const turn of [1, 2, 3]) told.push(...(await requestsOf(session, turn)).body.data);
    // The last one was refused: only what was answered is recorded.
    expect(told.map(({ request }) => request)).toEqual(sent.slice(0, -1));
    expect(
      told.map(({ call, round, purpose, matches }) => [call, round, purpose, matches]),
    ).toEqual([
      [1, 1, 'answer', true],
      [2, 2, 'answer', true],
      [1, 1, 'answer', true],
      [1, 1, 'answer', true],
    ]);
    expect(told[3]!.request.messages).toHaveLength(8);
    expect(await everyRequestRebuilt(service)).toBeGreaterThanOrEqual(4);
  });

  test('come in pages, a large one alone on its page', async () => {
    const agent = await service.createAgent({ tool: 'calculator' });
    const large = 'x'.repeat(400_000);
    service.model.use({ text: large });
    const session = await run(agent, large);
    service.model.use([{ tool_calls: [SUM] }, { tool_calls: [SUM] }, { text: 'So.' }]);
    await run(agent, large, session);
    const rest = await requestsOf(session, 2);
    expect(rest.body.data).toHaveLength(1);
    expect(rest.headers.get('link')).toContain('after=1>; rel="next"');
    const small = await requestsOf(session, 2, '?after=1&limit=1');
    expect(small.body.data).toMatchObject([{ call: 2, round: 2, matches: true }]);
    const path = `/v1/sessions/${session}/turns/2/requests?limit=2`;
    const calls: number[] = [];
    for await (const { call } of everyPage<ToldRequest>(service, path)) calls.push(call);
    expect(calls).toEqual([1, 2, 3]);
    expect((await requestsOf(session, 2, '?after=3')).body.data).toEqual([]);
  });

  test('are none of a turn that was interrupted, and none while it is open', async () => {
    const agent = await service.createAgent();
    service.model.use({ text: 'Hello.' });
    const session = await run(agent, 'hi');
    service.model.use({ fault: 'never_answer' });
    const body = { input: 'wait', session_id: session };
    const headers = { prefer: 'respond-async' };
    expect((await service.post(`/v1/agents/${agent}/run`, body, headers)).status).toBe(202);
    expect((await requestsOf(session, 2)).body).toMatchObject({ status: 200, data: [] });
    await service.post(`/v1/sessions/${session}/cancel`, {});
    expect((await requestsOf(session, 2)).body).toMatchObject({ status: 200, data: [] });
    expect((await requestsOf(session, 1)).body.data).toMatchObject([{ matches: true }]);
    service.model.use({ text: 'Hello.' });
  });

  test.each(['0', '3', '999999999', '1e1', '-1', 'x'])('are of no turn %s', async (turn) => {
    const session = await run(await service.createAgent(), 'hi');
    expectFailure(await requestsOf(session, turn), 'turn_not_found');
  });

  test('are gone with the texts of the agent, and with those of the session', async () => {
    const agent = await service.createAgent();
    service.model.use({ text: 'Hello.' });
    const [one, other] = [await run(agent, 'hi'), await run(agent, 'ho')];
    await service.send('DELETE', `/v1/agents/${agent}`, '');
    expect((await requestsOf(one, 1)).body.data).toMatchObject([{ matches: true }]);
    await service.send('DELETE', `/v1/sessions/${other}`, '');
    expectFailure(await requestsOf(other, 1), 'session_erased');
    await service.post(`/v1/agents/${agent}/erase`, '');
    expectFailure(await requestsOf(one, 1), 'agent_erased');
  });
});

describe('a session as it stood when a turn had ended', () => {
  const at = (session: string, query: string): Promise<Reply> =>
    service.get(`/v1/sessions/${session}?at_turn=${query}`);

  test('has the turns up to that one, and what names that moment', async () => {
    const { session } = await threeTurns();
    await service.send('PATCH', `/v1/sessions/${session}`, { title: 'Sums' });
    const whole = (await service.get(`/v1/sessions/${session}`)).body.data;
    const events = (await service.get(`/v1/sessions/${session}/events`)).body.data;
    for (const turn of [1, 2, 3]) {
      const { status, body } = await at(session, String(turn));
      const turns = whole.turns.slice(0, turn);
      const end = events.findLast(({ data }: { data: { turn?: number } }) => data.turn === turn);
      expect({ status, data: body.data }).toEqual({
        status: 200,
        data: {
          ...whole,
          turn_count: turn,
          updated_at: turns.at(-1).ended_at,
          at: { turn, revision: end.revision, hash: end.metadata.hash },
          turns,
        },
      });
    }
  });

  test('comes in pages, which end with that turn', async () => {
    const { session } = await threeTurns();
    const path = `/v1/sessions/${session}?at_turn=2&limit=1`;
    const turns = ({ turns: page }: { turns: { turn: number }[] }) => page;
    const seen: number[] = [];
    for await (const { turn } of everyPage(service, path, turns)) seen.push(turn);
    expect(seen).toEqual([1, 2]);
    expect((await at(session, '1&after=1')).body.data).toMatchObject({
      at: { turn: 1 },
      turns: [],
    });
  });

  test('is none of a turn that there is not, or that is open', async () => {
    const agent = await service.createAgent();
    service.model.use({ text: 'Hello.' });
    const session = await run(agent, 'hi');
    expectFailure(await at(session, '2'), 'turn_not_found');
    service.model.use({ fault: 'never_answer' });
    const body = { input: 'wait', session_id: session };
    await service.post(`/v1/agents/${agent}/run`, body, { prefer: 'respond-async' });
    const { error } = expectFailure(await at(session, '2'), 'turn_not_found');
    expect(error).toBe('The turn has not ended yet.');
    expect((await at(session, '1')).body.data).toMatchObject({ status: 'idle', turn_count: 1 });
    await service.post(`/v1/sessions/${session}/cancel`, {});
    expect((await at(session, '2')).body.data.turns.at(-1).status).toBe('interrupted');
    service.model.use({ text: 'Hello.' });
    await service.send('DELETE', `/v1/sessions/${session}`, '');
    expectFailure(await at(session, '1'), 'session_erased');
  });

  test.each(['0', '-1', '1.5', 'x', '', '1000000000', '1&at_turn=2'])(
    'is asked for by a number: %s',
    async (value) => {
      const session = await run(await service.createAgent(), 'hi');
      const { details } = expectFailure(await at(session, value), 'invalid_request');
      expect(details).toMatchObject({ at_turn: { path: 'query/at_turn' } });
    },
  );
});

describe('the program in Python', () => {
  test('comes to the same requests from the API alone', async () => {
    const { session } = await threeTurns();
    const { code, stdout } = await rebuiltByPython(service, session);
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: [
        'turn 1, round 1: as it was sent',
        'turn 1, round 2: as it was sent',
        'turn 2, round 1: as it was sent',
        'turn 3, round 1: as it was sent',
        '4 requests, 0 of them are not what was sent\n',
      ].join('\n'),
    });
  });

  test('looks at an earlier turn once for each round that it had', async () => {
    const program = `
import sys
sys.path.insert(0, "examples/python")
from rebuild_requests import turn_messages
class Looked(list):
    times = 0
    def __iter__(self):
        Looked.times += 1
        return super().__iter__()
call = {"call_id": "c", "tool": "t", "arguments": "{}", "result": "r"}
tools = Looked([dict(call, round="1"), dict(call, round="2"), dict(call, round="2")])
roles = [one["role"] for one in turn_messages({"input": "i", "tools": tools, "output": "o"}, 1000, True)]
assert roles == ["user", "assistant", "tool", "assistant", "tool", "tool", "assistant"], roles
print(Looked.times)`;
    const { stdout } = await promisify(execFile)('python3', ['-B', '-c', program], { cwd: root });
    expect(Number(stdout)).toBeLessThanOrEqual(3);
  });

  test('tells apart that it can’t be known, and how it is asked', async () => {
    const { code, stderr } = await rebuiltByPython(service, 'session_01kahz1c3sf6w9m3v5q7x9z1a3');
    expect([code, stderr]).toEqual([2, expect.stringContaining('session_not_found')]);
    const asked = await rebuiltByPython(service);
    expect([asked.code, asked.stderr]).toEqual([2, expect.stringContaining('TURNLOG_API_KEY')]);
  });
});

// Whoever can write to EventStoreDB can do the same; its events can't be changed in place.
(onEventStoreDb() ? describe.skip : describe)('a stream that was changed in its store', () => {
  test('is refused before a request is rebuilt from it, to both', async () => {
    const { session } = await threeTurns();
    const log = new DatabaseSync(join(service.folder, 'events.db'));
    const changed = log
      .prepare(
        "UPDATE events SET data = json_set(data, '$.settings.temperature', 0.2) WHERE stream = ? AND revision = 4",
      )
      .run(`session-${session}`);
    log.close();
    expect(changed.changes).toBe(1);
    expectFailure(await requestsOf(session, 2), 'stream_damaged');
    const { code, stderr } = await rebuiltByPython(service, session);
    expect([code, stderr]).toEqual([2, expect.stringContaining('stream_damaged')]);
  });
});
