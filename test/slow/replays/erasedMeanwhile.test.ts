import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { ChatRequest } from '../../../shared/sessions/turns/chat.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';
import { comparisonsIn, endOf, startReplayOf } from '../../support/builders/replays.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
}, 120_000);
afterAll(() => service.close());

/** A session of a turn for each input. */
async function recorded(agent: string, inputs: readonly string[]): Promise<string> {
  let session_id: string | undefined;
  for (const input of inputs) {
    const body = { input, ...(session_id && { session_id }) };
    session_id = (await service.post(`/v1/agents/${agent}/run`, body)).body.data.session_id;
  }
  return session_id!;
}

const judge = { judge: { model: 'scripted', criteria: 'It is short.' } };
const isJudge = ({ messages }: ChatRequest): boolean =>
  JSON.stringify(messages).includes('You judge');

test('with the session of a replay those of its judges are erased, and the recorded one stays', async () => {
  const session = await recorded(await service.createAgent(), ['One?', 'Two?']);
  service.model.use((request) => ({ text: isJudge(request) ? 'PASS: It is.' : 'Secret.' }));
  const checks = JSON.stringify([judge, judge]);
  const told = await endOf(
    service.folder,
    await startReplayOf(service.folder, { sessions: [session], checks }),
  );
  const judges = comparisonsIn(told).flatMap((turn) => turn.checks.map((made) => made.session_id!));
  expect(new Set(judges).size).toBe(4);
  const made = told.made.get(session)!;
  const shown = async (id: string) => {
    const { status, body } = await service.get(`/v1/sessions/${id}`);
    return [status, body.data?.replay?.session_id];
  };
  expect(await shown(judges[0]!)).toEqual([200, made]);
  expect((await service.send('DELETE', `/v1/sessions/${made}`, '')).status).toBe(200);
  for (const id of judges) expect(await shown(id)).toEqual([410, undefined]);
  expect(await shown(session)).toEqual([200, undefined]);
}, 120_000);

test('no judge is told the texts of the session of a replay that is erased while another one judges', async () => {
  const session = await recorded(await service.createAgent(), ['One?']);
  let judges = 0;
  service.model.use(async (request) => {
    if (!isJudge(request)) return { text: 'Secret.' };
    judges += 1;
    const { body } = await service.get(`/v1/sessions?replay_id=${await starting}`);
    const made = body.data.find(({ replay }: any) => replay.session_id === session);
    const { status } = await service.send('DELETE', `/v1/sessions/${made.session_id}`, '');
    expect(status).toBe(200);
    return { text: 'PASS: It is.' };
  });
  const checks = JSON.stringify([judge, judge, judge]);
  const starting = startReplayOf(service.folder, { sessions: [session], checks });
  const told = await endOf(service.folder, await starting);
  expect(judges).toBe(1);
  expect(told.events.at(-2)).toMatchObject({ data: { status: 'failed', code: 'session_erased' } });
}, 120_000);

test('no judge is told the texts of a session that is erased while another one judges', async () => {
  const session = await recorded(await service.createAgent(), ['Secret?']);
  let judges = 0;
  service.model.use(async (request) => {
    if (!isJudge(request)) return { text: 'Hello.' };
    judges += 1;
    const { status } = await service.send('DELETE', `/v1/sessions/${session}`, '');
    expect(status).toBe(200);
    return { text: 'PASS: It is.' };
  });
  const checks = JSON.stringify([judge, judge, judge]);
  const id = await startReplayOf(service.folder, { sessions: [session], checks });
  const told = await endOf(service.folder, id);
  expect(judges).toBe(1);
  expect(told.events.at(-2)).toMatchObject({ data: { status: 'failed', code: 'session_erased' } });
}, 120_000);

test('what was compared of a session is recorded, also where a later turn can not be replayed', async () => {
  const agent = await service.createAgent();
  const session = await recorded(agent, ['a', 'b', 'c']);
  let asked = 0;
  service.model.use(async () => {
    asked += 1;
    if (asked === 2) await service.send('DELETE', `/v1/sessions/${session}`, '');
    return { text: 'Hello again.' };
  });
  const id = await startReplayOf(service.folder, { sessions: [session] });
  const told = await endOf(service.folder, id);
  const { events } = told;
  expect(events.at(-2)).toMatchObject({ data: { status: 'failed', code: 'session_erased' } });
  expect(comparisonsIn(told)).toMatchObject([{ turn: 1, outcome: 'changed' }]);
}, 120_000);

test('a replay whose agent is erased keeps what was compared, and its session fails and says why', async () => {
  service.model.use(() => ({ text: 'Hello.' }));
  const agent = await service.createAgent();
  const session = await recorded(agent, ['a', 'b', 'c']);
  let asked = 0;
  service.model.use(async () => {
    asked += 1;
    if (asked === 2) await service.send('POST', `/v1/agents/${agent}/erase`, '');
    return { text: 'Hello again.' };
  });
  const told = await endOf(
    service.folder,
    await startReplayOf(service.folder, { sessions: [session] }),
  );
  expect(asked).toBe(2);
  expect(told.events.at(-2)).toMatchObject({ data: { status: 'failed', code: 'agent_erased' } });
  expect(comparisonsIn(told)).toMatchObject([
    { turn: 1, outcome: 'changed' },
    { turn: 2, outcome: 'failed', code: 'cancelled' },
  ]);
}, 120_000);

test.each(['the recorded session', 'the session of the first replay'])(
  'where %s is erased while a replay of the first replay’s session runs, all that was made of it goes',
  async (erased) => {
    const first = await recorded(await service.createAgent(), ['a', 'b', 'c']);
    service.model.use(() => ({ text: 'Hello again.' }));
    const once = await endOf(
      service.folder,
      await startReplayOf(service.folder, { sessions: [first] }),
    );
    const second = once.made.get(first)!;
    let asked = 0;
    service.model.use(async () => {
      asked += 1;
      const id = erased === 'the recorded session' ? first : second;
      if (asked === 2) await service.send('DELETE', `/v1/sessions/${id}`, '');
      return { text: 'Hello once more.' };
    });
    const twice = await endOf(
      service.folder,
      await startReplayOf(service.folder, { sessions: [second] }),
    );
    expect(asked).toBe(2);
    expect(twice.events.at(-2)).toMatchObject({
      data: { status: 'failed', code: 'session_erased' },
    });
    const statuses = [first, second, twice.made.get(second)!].map(
      async (id) => (await service.get(`/v1/sessions/${id}`)).status,
    );
    const left = erased === 'the recorded session' ? 410 : 200;
    expect(await Promise.all(statuses)).toEqual([left, 410, 410]);
  },
  120_000,
);
