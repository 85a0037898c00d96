import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { LIMITS } from '../../../shared/limits.ts';
import { expectGone, filesHolding, newMarker } from '../../support/stores/erasure/holding.ts';
import { expectFailure } from '../../support/http/failures.ts';
import { startTestService, type Reply, type TestService } from '../../support/http/service.ts';
import {
  asOperator,
  clientWith,
  newKey,
  watchLog,
  type WatchedLog,
} from '../../support/processes/operator.ts';
import { FIRST_ACCOUNT, revokeKey } from '../../../shared/accounts/commands.ts';

let service: TestService;
let log: WatchedLog;
let agent: string;
let session: string;
beforeAll(async () => {
  service = await startTestService(
    ({ messages }) => {
      const text = String(messages.at(-1)!.content);
      if (text === 'for ever') return { fault: 'never_answer' };
      if (text === 'fail') return { status: 400 };
      if (text === 'slower') return { text: 'yes', delay_ms: 2_500 };
      return { text: 'yes', ...(text === 'slow' && { delay_ms: 300 }) };
    },
    { RUN_WAIT_MS: '5000' },
  );
  log = await watchLog(service.folder);
  agent = await service.createAgent();
});
afterAll(async () => {
  await log.close();
  await service.close();
});

const run = (input: string, session_id?: string): Promise<Reply> =>
  service.post(`/v1/agents/${agent}/run`, { input, ...(session_id && { session_id }) });
const begun = async (): Promise<string> => (await run('hi')).body.data.session_id as string;
const patch = (body: object, id = session): Promise<Reply> =>
  service.send('PATCH', `/v1/sessions/${id}`, body);
const read = async (): Promise<Reply['body']['data']> =>
  (await service.get(`/v1/sessions/${session}`)).body.data;
const found = async (query: string): Promise<string[]> =>
  ((await service.get(`/v1/sessions?${query}`)).body.data as { session_id: string }[]).map(
    ({ session_id }) => session_id,
  );

beforeEach(async () => {
  session = await begun();
});

describe('describing a session', () => {
  test('is refused where the key is revoked while it waits for a turn', async () => {
    const key = await newKey(service.folder, { account: FIRST_ACCOUNT });
    const client = await clientWith(service.url, key);
    const actor = { account_id: FIRST_ACCOUNT, key_id: 'operator', request_id: 'test' };
    await asOperator(service.folder, async (operator) => {
      const running = run('slower', session);
      while ((await read()).status !== 'running');
      const waiting = client.send('PATCH', `/v1/sessions/${session}`, { title: 'Late' });
      await revokeKey(operator, actor, key.key_id);
      expectFailure(await waiting, 'unauthorized');
      await running;
    });
    expect((await read()).title).toBeNull();
  });

  test('gives it a title and labels, in its transcript and in the list, at once', async () => {
    const before = await read();
    expect([before.title, before.labels]).toEqual([null, {}]);
    const answer = await patch({ title: 'A refund', labels: { customer: '4711', 'to.do': 'é:ü' } });
    const { turns: _turns, ...expected } = before;
    expect([answer.status, answer.body.data]).toEqual([
      200,
      {
        ...expected,
        title: 'A refund',
        labels: { customer: '4711', 'to.do': 'é:ü' },
        updated_at: answer.body.data.updated_at,
        revision: before.revision + 1,
      },
    ]);
    expect(answer.body.data.updated_at > before.updated_at).toBe(true);
    expect(await read()).toEqual({ ...before, ...answer.body.data });
    const list = (await service.get('/v1/sessions?limit=1')).body.data;
    expect(list).toEqual([answer.body.data]);
  });

  test('changes what it names, and takes away what it gives null', async () => {
    await patch({ title: 'One', labels: { a: '1', b: '2' } });
    await patch({ labels: { b: null, c: '3', never: null } });
    expect(await read()).toMatchObject({ title: 'One', labels: { a: '1', c: '3' } });
    await patch({ title: null, labels: { a: null, c: null } });
    expect(await read()).toMatchObject({ title: null, labels: {} });
  });

  test('records nothing where it is called so already', async () => {
    await patch({ title: 'One', labels: { b: '2', a: '1' } });
    const head = await log.head();
    const shown = await read();
    for (const same of [{}, { title: 'One' }, { labels: { a: '1', x: null } }]) {
      const answer = await patch(same);
      expect([answer.status, answer.body.data.updated_at]).toEqual([200, shown.updated_at]);
    }
    expect(await log.head()).toBe(head);
  });

  test('happens however many do it at once, each on what the one before left', async () => {
    const names = Array.from({ length: 12 }, (_, index) => `label-${index}`);
    const answers = await Promise.all(names.map((name) => patch({ labels: { [name]: 'x' } })));
    expect(answers.map(({ status }) => status)).toEqual(names.map(() => 200));
    expect(Object.keys((await read()).labels).toSorted()).toEqual(names.toSorted());
  });

  test('waits for a run, and neither takes its answer away', async () => {
    const running = run('slow', session);
    await service.model.received(service.model.requests.length + 1);
    const answer = await patch({ title: 'Meanwhile' });
    expect([answer.status, (await running).status]).toEqual([200, 200]);
    expect(await read()).toMatchObject({ title: 'Meanwhile', turn_count: 2, status: 'idle' });
    expect((await run('hi', session)).status).toBe(200);
  });

  test('loses all labels by null, and the title alone keeps them (RFC 7396)', async () => {
    await patch({ title: 'T', labels: { a: '1', b: '2' } });
    const type = { 'content-type': 'application/merge-patch+json' };
    const path = `/v1/sessions/${session}`;
    const kept = await service.send('PATCH', path, { title: null }, type);
    expect(kept.body.data).toMatchObject({ title: null, labels: { a: '1', b: '2' } });
    expect((await patch({ labels: null })).body.data.labels).toEqual({});
    expect(await found('label=a:1')).not.toContain(session);
  });

  test('is told that the session is busy where a run goes on for too long', async () => {
    const running = run('for ever', session);
    await service.model.received(service.model.requests.length + 1);
    expectFailure(await patch({ title: 'Never' }), 'session_busy');
    await service.send('DELETE', `/v1/sessions/${session}`, '');
    expectFailure(await running, 'session_erased');
  });

  test('is refused more labels than a session may have, also one by one', async () => {
    const most = LIMITS.description.labels;
    const labels = Object.fromEntries(
      Array.from({ length: most }, (_, index) => [`n${index}`, 'x']),
    );
    expect((await patch({ labels })).status).toBe(200);
    const head = await log.head();
    const { details } = expectFailure(await patch({ labels: { more: 'x' } }), 'invalid_request');
    expect(details).toHaveProperty('labels');
    expect(await log.head()).toBe(head);
    expect((await patch({ labels: { more: 'x', n0: null } })).status).toBe(200);
  });

  test.each([
    ['a name with a capital', { labels: { A: '1' } }],
    ['a name with a colon', { labels: { 'a:b': '1' } }],
    ['a name that is too long', { labels: { ['a'.repeat(65)]: '1' } }],
    ['no name', { labels: { '': '1' } }],
    ['a value that is too long', { labels: { a: 'x'.repeat(257) } }],
    ['an empty value', { labels: { a: '' } }],
    ['a value that is a number', { labels: { a: 1 } }],
    ['a title that is too long', { title: 'x'.repeat(257) }],
    ['an empty title', { title: '' }],
    ['NUL', { title: 'a\u0000b' }],
    ['an unknown field', { name: 'x' }],
    [
      'too many labels',
      { labels: Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`n${i}`, null])) },
    ],
  ])('is refused %s', async (_what, body) => {
    const head = await log.head();
    expectFailure(await patch(body), 'invalid_request');
    expect(await log.head()).toBe(head);
  });

  test('leaves neither title nor label behind where the session is erased', async () => {
    const [title, value] = [newMarker(), newMarker()];
    await patch({ title, labels: { customer: value } });
    expect(await found(`label=customer:${value}`)).toEqual([session]);
    // The read models show them, the log does not.
    expect(filesHolding(service.folder, title).length).toBeGreaterThan(0);
    await service.send('DELETE', `/v1/sessions/${session}`, '');
    expectFailure(await patch({ title: 'x' }), 'session_erased');
    expect(await found(`label=customer:${value}`)).toEqual([]);
    for (const marker of [title, value]) await expectGone(service.folder, marker);
  });
});

describe('the list of sessions', () => {
  test('has those with all of the labels, and none of the others', async () => {
    const [one, two, three] = [await begun(), await begun(), await begun()];
    const mark = newMarker();
    for (const id of [one, two, three]) await patch({ labels: { mark } }, id);
    await patch({ labels: { colour: 'red:ish' } }, one);
    await patch({ labels: { colour: 'red:ish' } }, three);
    expect(await found(`label=mark:${mark}`)).toEqual([three, two, one]);
    expect(await found(`label=mark:${mark}&label=colour:red:ish`)).toEqual([three, one]);
    expect(await found(`label=mark:${mark}&label=colour:red`)).toEqual([]);
    await patch({ labels: { colour: null } }, three);
    expect(await found(`label=mark:${mark}&label=colour:red:ish`)).toEqual([one]);
  });

  test('comes oldest first, in pages that go on in that order, with all that was asked', async () => {
    const mark = newMarker();
    const ids = [await begun(), await begun(), await begun()];
    for (const id of ids) await patch({ labels: { mark, a: '1' } }, id);
    const walked: string[] = [];
    let next: string | undefined = `/v1/sessions?order=oldest&limit=2&label=mark:${mark}&label=a:1`;
    while (next !== undefined) {
      const page = await service.get(next);
      walked.push(...page.body.data.map(({ session_id }: { session_id: string }) => session_id));
      next = /^<(.+)>; rel="next"$/.exec(page.headers.get('link') ?? '')?.[1];
    }
    expect(walked).toEqual(ids);
  });

  test('has those of a status and of a time', async () => {
    const { created_at, updated_at } = await read();
    const later = await begun();
    const of = (query: string) => found(`agent_id=${agent}&limit=1000&${query}`);
    expect(await of('status=running')).toEqual([]);
    expect(await of('status=idle')).toEqual(expect.arrayContaining([session, later]));
    expect(await of(`created_from=${created_at}`)).toEqual(
      expect.arrayContaining([later, session]),
    );
    expect(await of(`created_to=${created_at}`)).not.toContain(session);
    expect(await of(`updated_to=${updated_at}`)).not.toContain(later);
    expect(await of(`created_from=${created_at}&created_to=2999-01-01T00:00:00Z`)).toContain(
      session,
    );
    const at = Date.parse(created_at as string);
    const inIndia = new Date(at + 5.5 * 3_600_000).toISOString().replace('Z', '%2B05:30');
    const inNewYork = new Date(at - 5 * 3_600_000).toISOString().replace('Z', '-05:00');
    expect(await of(`created_from=${inIndia}`)).toContain(session);
    expect(await of(`created_to=${inIndia}`)).not.toContain(session);
    expect(await of(`created_from=${inIndia.replace('%2B', '+')}`)).toContain(session);
    expect(await of(`created_from=${inNewYork}&created_to=2999-01-01`)).toContain(session);
    const tomorrow = new Date(at + 86_400_000).toISOString().slice(0, 10);
    expect(await of(`created_from=${tomorrow}`)).not.toContain(session);
    await patch({ title: 'touched' });
    expect((await of(`updated_from=${updated_at}&order=oldest`))[0]).toBe(session);
    expect(await of(`updated_from=${(await read()).updated_at}`)).toEqual([session]);
  });

  test('has those with a turn that failed, and in the forks of these none of the shared ones', async () => {
    const failing = await begun();
    expectFailure(await run('fail', failing), 'model_error');
    await run('hi', failing);
    const of = (query: string) => found(`agent_id=${agent}&limit=1000&${query}`);
    expect(await of('outcome=failed')).toEqual([failing]);
    expect(await of('outcome=completed')).toEqual(expect.arrayContaining([failing, session]));
    expect(await of('outcome=interrupted')).not.toContain(failing);
    expect(await of('outcome=failed&status=running')).toEqual([]);
    await service.post(`/v1/sessions/${failing}/fork`, { at_turn: 2 });
    expect(await of('outcome=failed')).toEqual([failing]);
    await service.send('DELETE', `/v1/sessions/${failing}`, '');
    expect(await of('outcome=failed')).toEqual([]);
  });

  test.each([
    'status=erased',
    'outcome=running',
    'outcome=',
    'order=up',
    'label=novalue',
    'label=A:1',
    'label=a:',
    'created_from=yesterday',
    'updated_to=2026-02-30',
    'updated_to=2026-02-30T10:00:00Z',
    'created_to=2026-01-01T10:00:00',
    'label=a:1&'.repeat(9),
    'status=idle&status=running',
  ])('is refused %s', async (query) => {
    expectFailure(await service.get(`/v1/sessions?${query}`), 'invalid_request');
  });
});
