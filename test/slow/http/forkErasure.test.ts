import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { expectGone, newMarker } from '../../support/stores/erasure/holding.ts';
import { expectFailure } from '../../support/http/failures.ts';
import { echo, forking, inputsOf } from '../../support/http/forking.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';

let service: TestService;
let agent: string;
let does: ReturnType<typeof forking>;
beforeAll(async () => {
  service = await startTestService(echo);
  does = forking(service);
});
afterAll(() => service.close());
beforeEach(async () => {
  service.model.use(echo);
  agent = await service.createAgent();
});

const run = (inputs: string[], session?: string) => does.run(agent, inputs, session);
const goOn = (session_id: string, input = 'more', headers = {}) =>
  service.post(`/v1/agents/${agent}/run`, { input, session_id }, headers);

describe('erasing the origin of a fork', () => {
  test.each([
    ['that this process remembers', async () => undefined],
    ['that it does not', () => service.restart()],
  ])('leaves the own turns of one %s, and refuses what needs the others', async (_, forget) => {
    const origin = await run(['a', 'b', 'c']);
    const { session_id } = await does.fork(origin, 2);
    await run(['d', 'e'], session_id);
    await forget();
    await does.erase(origin);
    const shown = await does.read(session_id);
    expect(inputsOf(shown)).toEqual(['3 d', '4 e']);
    expect(shown).toMatchObject({
      turn_count: 4,
      forked_from: { session_id: origin, erased: true },
    });
    expect(inputsOf(await does.read(session_id, '?after=1&limit=1'))).toEqual(['3 d']);
    const path = `/v1/sessions/${session_id}`;
    expect((await service.get(`${path}/turns/3`)).body.data.input).toBe('d');
    const asked = service.model.requests.length;
    const before = await does.events(session_id);
    for (const reply of [
      await service.get(`${path}/turns/2`),
      await service.get(`${path}/turns/1/stream`),
      await service.post(`${path}/fork`, { at_turn: 1 }),
      await service.post(`${path}/fork`, { at_turn: 4 }),
      await service.get(`${path}?at_turn=2`),
      await service.post(`${path}/cancel`, { turn: 2 }),
      await goOn(session_id),
    ])
      expectFailure(reply, 'origin_erased');
    expect(service.model.requests.length).toBe(asked);
    expect(await does.events(session_id)).toEqual(before);
    const described = await service.send('PATCH', path, { title: 'What is left' });
    expect(described.status).toBe(200);
    expect(await does.erase(session_id)).toMatchObject({ session_id });
    expectFailure(await service.get(path), 'session_erased');
  });

  test('takes every text that both shared: no file holds one, of a fork that went on either', async () => {
    const marker = newMarker();
    const origin = await run([marker]);
    const { session_id } = await does.fork(origin, 1);
    service.model.use({ text: 'said' });
    await run(['own'], session_id);
    await does.erase(origin);
    expect(inputsOf(await does.read(session_id))).toEqual(['2 own']);
    await expectGone(service.folder, marker);
  });

  test('of a fork of a fork leaves what comes after the session that was erased', async () => {
    const origin = await run(['a']);
    const first = (await does.fork(origin, 1)).session_id;
    await run(['b'], first);
    const second = (await does.fork(first, 2)).session_id;
    const third = (await does.fork(first, 1)).session_id;
    await run(['c'], second);
    await run(['d'], third);
    await does.erase(first);
    expect(inputsOf(await does.read(second))).toEqual(['3 c']);
    expectFailure(await service.get(`/v1/sessions/${second}/turns/1`), 'origin_erased');
    expectFailure(await goOn(second), 'origin_erased');
    // That one was forked after a turn that its origin only shared.
    expect(inputsOf(await does.read(third))).toEqual(['1 a', '2 d']);
    expect((await goOn(third)).status).toBe(200);
    await does.erase(origin);
    expect(inputsOf(await does.read(third))).toEqual(['2 d', '3 more']);
  });

  test('of the first of three takes its turns alone, and tells so', async () => {
    const origin = await run(['a']);
    const first = (await does.fork(origin, 1)).session_id;
    await run(['b'], first);
    const second = (await does.fork(first, 2)).session_id;
    await does.erase(origin);
    const shown = await does.read(second);
    expect([inputsOf(shown), shown.forked_from.erased]).toEqual([['2 b'], true]);
    expectFailure(await goOn(second), 'origin_erased');
    expectFailure(
      await service.post(`/v1/sessions/${second}/fork`, { at_turn: 2 }),
      'origin_erased',
    );
  });

  test('refuses a run of a fork whose shared turns were all cancelled, too', async () => {
    service.model.use({ fault: 'never_answer' });
    const background = { prefer: 'respond-async' };
    const path = `/v1/agents/${agent}/run`;
    const begun = await service.post(path, { input: 'a' }, background);
    const origin = begun.body.data.session_id as string;
    expect((await service.post(`/v1/sessions/${origin}/cancel`, {})).status).toBe(200);
    service.model.use(echo);
    const { session_id } = await does.fork(origin, 1);
    expect((await goOn(session_id)).status).toBe(200);
    await does.erase(origin);
    expectFailure(await goOn(session_id), 'origin_erased');
  });

  test('ends a run whose prompt holds turns of it, and the turn says so', async () => {
    const origin = await run(['a']);
    const { session_id } = await does.fork(origin, 1);
    service.model.use({ fault: 'never_answer' });
    const asked = service.model.requests.length;
    const running = goOn(session_id);
    while (service.model.requests.length === asked) await new Promise((go) => setTimeout(go, 5));
    await does.erase(origin);
    expectFailure(await running, 'turn_interrupted');
    const { turns } = await does.read(session_id);
    expect(turns).toMatchObject([
      { turn: 2, status: 'interrupted', error: { code: 'turn_interrupted', reason: 'cancelled' } },
    ]);
  });

  test('ends a run that is having the turns of it summed up, and no summary is recorded', async () => {
    const narrow = await service.createAgent({ model: 'narrow', instruction: 'Be brief.' });
    const long = (name: string) => `${name} ${'word '.repeat(20)}`;
    const origin = await does.run(narrow, [long('a'), long('b'), long('c')]);
    const { session_id } = await does.fork(origin, 3);
    await service.send('PATCH', `/v1/agents/${narrow}`, { compaction: true });
    let answer = (): void => undefined;
    const held = new Promise<void>((resolve) => (answer = resolve));
    service.model.use(async () => {
      await held;
      return { text: 'in short' };
    });
    const asked = service.model.requests.length;
    const running = service.post(`/v1/agents/${narrow}/run`, { input: 'd', session_id });
    while (service.model.requests.length === asked) await new Promise((go) => setTimeout(go, 5));
    expect(JSON.stringify(service.model.requests.at(-1))).toContain('Sum it up');
    await does.erase(origin);
    answer();
    expectFailure(await running, 'origin_erased');
    const types = (await does.events(session_id)).map(({ type }: { type: string }) => type);
    expect(types).toEqual(['session.started.v1']);
  });

  test('lets a fork go on whose own turns fill the prompt', async () => {
    const narrow = await service.createAgent({ model: 'narrow', instruction: 'Be brief.' });
    const origin = await does.run(narrow, ['a']);
    const { session_id } = await does.fork(origin, 1);
    const long = (name: string) => `${name} ${'word '.repeat(30)}`;
    await does.run(narrow, [long('b'), long('c'), long('d')], session_id);
    await does.erase(origin);
    for (const restarted of [false, true]) {
      if (restarted) await service.restart();
      const reply = await service.post(`/v1/agents/${narrow}/run`, { input: 'e', session_id });
      expect([reply.status, reply.body.code]).toEqual([200, undefined]);
      expect(JSON.stringify(service.model.requests.at(-1))).not.toContain('answer to a');
    }
  });
});

test('erasing a fork leaves its origin alone, and other forks of it', async () => {
  const origin = await run(['a', 'b']);
  const [one, other] = [await does.fork(origin, 1), await does.fork(origin, 2)];
  // Without a text of its own, too.
  for (const { session_id } of [one]) await does.erase(session_id);
  expectFailure(await service.get(`/v1/sessions/${one.session_id}`), 'session_erased');
  expect(inputsOf(await does.read(origin))).toEqual(['1 a', '2 b']);
  expect(inputsOf(await does.read(other.session_id))).toEqual(['1 a', '2 b']);
  await run(['c'], other.session_id);
  await run(['c'], origin);
});

test('a session that was erased is not forked', async () => {
  const origin = await run(['a']);
  await does.erase(origin);
  expectFailure(
    await service.post(`/v1/sessions/${origin}/fork`, { at_turn: 1 }),
    'session_erased',
  );
});
