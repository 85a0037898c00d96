import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { expectFailure } from '../../support/http/failures.ts';
import { echo, forking, inputsOf } from '../../support/http/forking.ts';
import { closeRebuilt } from '../../support/http/rebuiltRequests.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';
import { allEvents, openEvents } from '../../support/http/sse.ts';
import { clientWith, newKey } from '../../support/processes/operator.ts';

let service: TestService;
let agent: string;
let does: ReturnType<typeof forking>;
beforeAll(async () => {
  service = await startTestService(echo);
  agent = await service.createAgent();
  does = forking(service);
});
afterAll(() => closeRebuilt(service));

const run = (inputs: string[], session?: string) => does.run(agent, inputs, session);
const ask = (session: string, body: unknown, headers = {}) =>
  service.post(`/v1/sessions/${session}/fork`, body, headers);
const origins = (data: { turns: { origin_session_id?: string }[] }) =>
  data.turns.map(({ origin_session_id }) => origin_session_id);

describe('a fork', () => {
  test('goes on after a turn of its origin, with the prompts that the origin would have', async () => {
    const origin = await run(['a', 'b', 'c']);
    const forked = await does.fork(origin, 2);
    expect(forked).toMatchObject({ agent_id: agent, status: 'idle', turn_count: 2, title: null });
    const end = (await does.events(origin)).find(
      ({ type, data }: { type: string; data: { turn: number } }) =>
        type === 'session.turn_completed.v1' && data.turn === 2,
    );
    const { revision, metadata } = end;
    const forked_from = { session_id: origin, turn: 2, revision, hash: metadata.hash };
    expect(forked.forked_from).toEqual(forked_from);
    await run(['d'], forked.session_id);
    const [instruction, ...messages] = JSON.parse(service.model.bodies.at(-1)!).messages;
    expect(instruction.role).toBe('system');
    expect(messages.map(({ content }: { content: string }) => content)).toEqual([
      'a',
      'answer to a',
      'b',
      'answer to b',
      'd',
    ]);
    const shown = await does.read(forked.session_id);
    expect(inputsOf(shown)).toEqual(['1 a', '2 b', '3 d']);
    expect(origins(shown)).toEqual([origin, origin, undefined]);
    expect(shown).toMatchObject({ turn_count: 3, forked_from: { ...forked_from, erased: false } });
    expect(inputsOf(await does.read(origin))).toEqual(['1 a', '2 b', '3 c']);
    const [listed] = (await service.get('/v1/sessions?limit=1')).body.data;
    expect([listed.session_id, listed.forked_from]).toEqual([forked.session_id, forked_from]);
    expect((await does.read(origin)).forked_from).toBeUndefined();
  });

  test('records its own events only, the first of which leads on to its origin', async () => {
    const origin = await run(['a', 'b']);
    const forked = await does.fork(origin, 1);
    await run(['c'], forked.session_id);
    const events = await does.events(forked.session_id);
    expect(events.map(({ type }: { type: string }) => type)).toEqual([
      'session.started.v1',
      'session.turn_started.v1',
      'session.turn_completed.v1',
    ]);
    expect(events[0].data).toEqual({ agent_id: agent, forked_from: forked.forked_from });
  });

  test('of a turn that is shared is one of the session that recorded it', async () => {
    const origin = await run(['a', 'b', 'c']);
    const first = await does.fork(origin, 2);
    await run(['d'], first.session_id);
    const shared = await does.fork(first.session_id, 1);
    expect(shared.forked_from).toMatchObject({ session_id: origin, turn: 1 });
    const own = await does.fork(first.session_id, 3);
    expect(own.forked_from).toMatchObject({ session_id: first.session_id, turn: 3 });
    await run(['e'], own.session_id);
    const shown = await does.read(own.session_id);
    expect(inputsOf(shown)).toEqual(['1 a', '2 b', '3 d', '4 e']);
    expect(origins(shown)).toEqual([origin, origin, first.session_id, undefined]);
  });

  test('is read in pages that begin in the turns of its origins and go on with its own', async () => {
    const origin = await run(['a', 'b', 'c']);
    const first = (await does.fork(origin, 2)).session_id;
    await run(['d', 'e'], first);
    const second = (await does.fork(first, 3)).session_id;
    await run(['f', 'g'], second);
    const all = ['1 a', '2 b', '3 d', '4 f', '5 g'];
    for (let limit = 1; limit <= 6; limit += 1) {
      const seen: string[] = [];
      let next: string | undefined = `/v1/sessions/${second}?limit=${limit}`;
      while (next) {
        const { body, headers } = await service.get(next);
        const page = inputsOf(body.data);
        expect(page.length).toBeLessThanOrEqual(limit);
        seen.push(...page);
        next = /<([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1];
      }
      expect([limit, seen]).toEqual([limit, all]);
    }
    expect(inputsOf(await does.read(second, '?after=1&limit=3'))).toEqual(all.slice(1, 4));
  });

  test('without own turns ends with the page of its last shared turn', async () => {
    const origin = await run(['a', 'b', 'c']);
    const first = (await does.fork(origin, 2)).session_id;
    const second = (await does.fork(first, 2)).session_id;
    for (const session of [first, second]) {
      const isLast = async (limit: number): Promise<boolean> =>
        !(await service.get(`/v1/sessions/${session}?limit=${limit}`)).headers.has('link');
      expect(await Promise.all([1, 2, 3].map(isLast))).toEqual([false, true, true]);
    }
  });

  test('answers the turns that it shares as its own, and streams them', async () => {
    const origin = await run(['a', 'b']);
    const { session_id } = await does.fork(origin, 2);
    for (const turn of [1, 2]) {
      const { body } = await service.get(`/v1/sessions/${session_id}/turns/${turn}`);
      const [shown] = (await does.read(session_id, `?after=${turn - 1}&limit=1`)).turns;
      expect([body.data.turn, body.data]).toEqual([turn, shown]);
      expect(body.data.origin_session_id).toBe(origin);
    }
    const url = `${service.url}/v1/sessions/${session_id}/turns/1/stream`;
    const heard = await allEvents(await openEvents(url, { headers: { 'x-api-key': service.key } }));
    expect(heard.map(({ event }) => event)).toEqual([
      'turn.started',
      'output.delta',
      'turn.completed',
    ]);
    expect((heard.at(-1)!.data as { data: object }).data).toMatchObject({
      output: 'answer to a',
      session_id,
    });
    expectFailure(await service.get(`/v1/sessions/${session_id}/turns/3`), 'turn_not_found');
  });

  test('takes no title or labels along, and has its own', async () => {
    const origin = await run(['a']);
    await service.send('PATCH', `/v1/sessions/${origin}`, { title: 'Of the origin' });
    const { session_id } = await does.fork(origin, 1);
    expect(await does.read(session_id)).toMatchObject({ title: null, labels: {} });
    const patched = await service.send('PATCH', `/v1/sessions/${session_id}`, { title: 'Own' });
    expect(patched.body.data).toMatchObject({ title: 'Own', turn_count: 1 });
    expect(await does.read(origin)).toMatchObject({ title: 'Of the origin' });
  });

  test('is made after a turn that failed, and of a session whose later turn is open', async () => {
    const origin = await run(['a']);
    service.model.use({ status: 400 });
    const body = { input: 'b', session_id: origin };
    expect((await service.post(`/v1/agents/${agent}/run`, body)).status).toBe(502);
    let answer = (): void => undefined;
    const held = new Promise<void>((resolve) => (answer = resolve));
    service.model.use(async (request) => {
      if (request.messages.at(-1)!.content === 'c') await held;
      return echo(request);
    });
    const path = `/v1/agents/${agent}/run`;
    const open = { ...body, input: 'c' };
    expect((await service.post(path, open, { prefer: 'respond-async' })).status).toBe(202);
    const failed = await ask(origin, { at_turn: 3 });
    expectFailure(failed, 'invalid_request');
    expect(failed.body.details).toEqual({
      at_turn: { message: expect.stringMatching(/has not ended/), path: '/at_turn' },
    });
    const { session_id } = await does.fork(origin, 2);
    await run(['d'], session_id);
    answer();
    const { body: last } = await service.get(`/v1/sessions/${origin}/turns/3`, {
      prefer: 'wait=20',
    });
    expect(last.data.output).toBe('answer to c');
    service.model.use(echo);
    expect(inputsOf(await does.read(session_id))).toEqual(['1 a', '2 b', '3 d']);
    expect(inputsOf(await does.read(origin))).toEqual(['1 a', '2 b', '3 c']);
  });
});

describe('forking', () => {
  test.each([
    [{}, 'at_turn'],
    [{ at_turn: 0 }, 'at_turn'],
    [{ at_turn: 1.5 }, 'at_turn'],
    [{ at_turn: '1' }, 'at_turn'],
    [{ at_turn: 3 }, 'at_turn'],
    [{ at_turn: 1_000_000_000 }, 'at_turn'],
    [{ at_turn: 1, title: 'x' }, 'title'],
  ])('with %j is a 400 that names the field', async (body, field) => {
    const reply = await ask(await run(['a', 'b']), body);
    expectFailure(reply, 'invalid_request');
    expect(Object.keys(reply.body.details!)).toEqual([field]);
  });

  test('sent again with its key makes one fork, however many send it; with another turn it is refused', async () => {
    const origin = await run(['a', 'b']);
    const key = { 'idempotency-key': randomUUID() };
    const replies = await Promise.all([1, 2, 3].map(() => ask(origin, { at_turn: 1 }, key)));
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(new Set(replies.map(({ body }) => JSON.stringify(body.data))).size).toBe(1);
    const [first] = replies;
    await run(['c'], first!.body.data.session_id);
    const again = await ask(origin, { at_turn: 1 }, key);
    expect(again.body.data).toEqual(first!.body.data);
    expect(again.headers.get('idempotency-replayed')).toBe('true');
    expectFailure(await ask(origin, { at_turn: 2 }, key), 'idempotency_conflict');
    await does.erase(first!.body.data.session_id);
    expectFailure(await ask(origin, { at_turn: 1 }, key), 'session_erased');
  });

  test('needs the scope of running agents', async () => {
    const origin = await run(['a']);
    for (const [scope, status] of [
      ['sessions:read', 403],
      ['agents:run', 200],
    ] as const) {
      const { account_id } = (await does.events(origin))[0].metadata;
      const key = await newKey(service.folder, { scopes: [scope], account: account_id });
      const client = await clientWith(service.url, key);
      const reply = await client.post(`/v1/sessions/${origin}/fork`, { at_turn: 1 });
      expect([scope, reply.status]).toEqual([scope, status]);
    }
  });

  test('is refused where turns of more sessions would be shared than may be', async () => {
    let session = await run(['a']);
    for (let turn = 1; turn <= 16; turn += 1)
      session = await run(['b'], (await does.fork(session, turn)).session_id);
    const reply = await ask(session, { at_turn: 17 });
    expectFailure(reply, 'invalid_request');
    expect(reply.body.details!['at_turn']!.message).toMatch(/fork of 16 forks/);
    expect((await does.read(session)).turns).toHaveLength(17);
    await does.fork(session, 16);
  });
});
