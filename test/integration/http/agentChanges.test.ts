import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { expectFailure } from '../../support/http/failures.ts';
import { startTestService, type Reply, type TestService } from '../../support/http/service.ts';
import { watchLog, type WatchedLog } from '../../support/processes/operator.ts';

let service: TestService;
let log: WatchedLog;
let agent: string;
let path: string;
beforeAll(async () => {
  service = await startTestService(({ messages }) =>
    String(messages.at(-1)!.content).startsWith('slow')
      ? { text: 'late', delay_ms: 400 }
      : { text: `as ${String(messages[0]!.content)}` },
  );
  log = await watchLog(service.folder);
});
afterAll(async () => {
  await log.close();
  await service.close();
});
beforeEach(async () => {
  agent = await service.createAgent({ name: 'One', instruction: 'be one', tool: 'calculator' });
  path = `/v1/agents/${agent}`;
});

const put = (body: object, headers?: Record<string, string>): Promise<Reply> =>
  service.send('PUT', path, body, headers);
const patch = (body: object, headers?: Record<string, string>): Promise<Reply> =>
  service.send('PATCH', path, body, headers);
const remove = (headers?: Record<string, string>): Promise<Reply> =>
  service.send('DELETE', path, '', headers);
const run = (input: string, session_id?: string): Promise<Reply> =>
  service.post(`${path}/run`, { input, ...(session_id && { session_id }) });
const tag = async (): Promise<string> => (await service.get(path)).headers.get('etag')!;
const listed = async (): Promise<string[]> =>
  ((await service.get('/v1/agents')).body.data as { agent_id: string }[]).map(
    ({ agent_id }) => agent_id,
  );

describe('an agent that changes', () => {
  test('is what PUT says, whole; what it leaves out is gone', async () => {
    const created = (await service.get(path)).body.data;
    const answer = await put({ name: 'Two', instruction: 'be two', model: 'scripted' });
    expect([answer.status, answer.body.data]).toEqual([
      200,
      {
        agent_id: agent,
        name: 'Two',
        config: { agent_id: agent, name: 'Two', instruction: 'be two', model: 'scripted' },
        component: 'Chat',
        revision: 1,
        created_at: created.created_at,
        updated_at: answer.body.data.updated_at,
      },
    ]);
    expect(answer.body.data.updated_at > created.updated_at).toBe(true);
    const read = await service.get(path);
    expect(read.body.data).toEqual(answer.body.data);
    expect(read.headers.get('etag')).toBe(answer.headers.get('etag'));
  });

  test('keeps what PATCH does not name, and loses what it gives null', async () => {
    expect((await patch({ name: 'Two' })).body.data).toMatchObject({
      name: 'Two',
      config: { name: 'Two', instruction: 'be one', tool: 'calculator' },
      revision: 1,
    });
    const { config, component } = (await patch({ tool: null, component: null })).body.data;
    expect([config, component]).toEqual([
      { agent_id: agent, name: 'Two', instruction: 'be one', model: 'scripted' },
      'Chat',
    ]);
  });

  test('takes a patch as application/merge-patch+json, which only PATCH may declare', async () => {
    const type = { 'content-type': 'application/merge-patch+json; charset=utf-8' };
    expect((await patch({ name: 'Merged' }, type)).body.data.name).toBe('Merged');
    const body = { name: 'Two', instruction: 'be two', model: 'scripted' };
    for (const [method, to] of [
      ['PUT', path],
      ['POST', '/v1/agents'],
    ] as const)
      expectFailure(await service.send(method, to, body, type), 'unsupported_media_type');
    const other = await patch({ name: 'X' }, { 'content-type': 'application/json-patch+json' });
    expectFailure(other, 'unsupported_media_type');
    expect(other.headers.get('accept-patch')).toBe(
      'application/json, application/merge-patch+json',
    );
  });

  test('records nothing where nothing changes, and says what is so', async () => {
    const before = await service.get(path);
    const head = await log.head();
    for (const same of [{}, { name: 'One' }, { tool: 'calculator', model: 'scripted' }]) {
      const answer = await patch(same);
      expect([answer.status, answer.body.data]).toEqual([200, before.body.data]);
      expect(answer.headers.get('etag')).toBe(before.headers.get('etag'));
    }
    expect(await log.head()).toBe(head);
  });

  test('is in the list at once as it is, under another ETag', async () => {
    const before = (await service.get('/v1/agents')).headers.get('etag')!;
    await patch({ name: 'Renamed' });
    const list = await service.get('/v1/agents', { 'if-none-match': before });
    expect(list.status).toBe(200);
    expect(list.body.data).toContainEqual(
      expect.objectContaining({ agent_id: agent, name: 'Renamed' }),
    );
  });

  test('is used by the next run, in a session that there is, too, whose turns name its revisions', async () => {
    const first = await run('hi');
    const session = first.body.data.session_id as string;
    await patch({ instruction: 'be two' });
    const second = await run('hi', session);
    expect([first.body.data.output, second.body.data.output]).toEqual(['as be one', 'as be two']);
    const { turns } = (await service.get(`/v1/sessions/${session}`)).body.data;
    expect(turns.map(({ agent_revision }: { agent_revision: number }) => agent_revision)).toEqual([
      0, 1,
    ]);
  });

  test.each([
    ['an unknown model', { model: 'gpt-9' }, 'model_not_supported'],
    ['an unknown tool', { tool: 'hammer' }, 'tool_not_supported'],
    ['a required field as null', { name: null }, 'invalid_request'],
    ['a blank name', { name: ' ' }, 'invalid_request'],
    ['an unknown field', { colour: 'red' }, 'invalid_request'],
  ] as const)('is refused %s, and stays as it is', async (_what, change, code) => {
    const head = await log.head();
    expectFailure(await patch(change), code);
    expect(await log.head()).toBe(head);
  });
});

describe('If-Match', () => {
  test('lets one of many through that know the same revision', async () => {
    const known = { 'if-match': await tag() };
    const answers = await Promise.all(['a', 'b', 'c', 'd'].map((name) => patch({ name }, known)));
    expect(answers.map(({ status }) => String(status)).toSorted()).toEqual([
      '200',
      '412',
      '412',
      '412',
    ]);
    const won = answers.find(({ status }) => status === 200)!;
    expect((await service.get(path)).body.data).toEqual(won.body.data);
    for (const lost of answers.filter(({ status }) => status === 412))
      expectFailure(lost, 'precondition_failed');
  });

  test('without it every change happens, each on what the one before left', async () => {
    const answers = await Promise.all([
      patch({ name: 'Two' }),
      patch({ instruction: 'be two' }),
      patch({ tool: null }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect((await service.get(path)).body.data).toMatchObject({
      revision: 3,
      config: { name: 'Two', instruction: 'be two', model: 'scripted' },
    });
  });

  test('of an older revision keeps PUT and DELETE from it, too', async () => {
    const old = { 'if-match': await tag() };
    await patch({ name: 'Two' });
    const head = await log.head();
    const whole = { name: 'Three', instruction: 'be', model: 'scripted' };
    for (const answer of [await put(whole, old), await remove(old), await patch({}, old)])
      expectFailure(answer, 'precondition_failed');
    expect(await log.head()).toBe(head);
    const known = { 'if-match': `"0-x", ${await tag()}` };
    expect((await put(whole, known)).status).toBe(200);
    expect((await remove({ 'if-match': '*' })).status).toBe(200);
  });

  test('compares strong tags only, and nothing else names a revision', async () => {
    const known = await tag();
    expect(known).toMatch(/^"0-[\w-]+"$/);
    const head = await log.head();
    for (const other of [`W/${known}`, '"nobody"', '0', '"0', '"', '"0-x '.repeat(2_000)])
      expectFailure(await patch({ name: 'x' }, { 'if-match': other }), 'precondition_failed');
    expect(await log.head()).toBe(head);
  });
});

describe('a deleted agent', () => {
  test('is in no list, can neither run nor change, and its sessions stay', async () => {
    const session = (await run('hi')).body.data.session_id as string;
    const before = (await service.get('/v1/agents')).headers.get('etag')!;
    const deleted = await remove();
    expect([deleted.status, deleted.body.data]).toEqual([
      200,
      { agent_id: agent, revision: 1, deleted_at: deleted.body.data.deleted_at },
    ]);
    expect((await service.get('/v1/agents', { 'if-none-match': before })).status).toBe(200);
    expect(await listed()).not.toContain(agent);
    for (const answer of [
      await service.get(path),
      await run('hi'),
      await run('hi', session),
      await patch({ name: 'x' }),
      await remove(),
    ])
      expectFailure(answer, 'agent_not_found');
    expect((await service.get(`/v1/sessions/${session}`)).body.data.turns).toHaveLength(1);
    const revisions = (await service.get(`${path}/revisions`)).body.data;
    expect(revisions.map(({ change }: { change: string }) => change)).toEqual([
      'deleted',
      'created',
    ]);
  });

  test('ends its running turn as if nothing had happened', async () => {
    const running = run('slow');
    const { model } = service;
    const asked = model.requests.length;
    while (model.requests.length === asked) await new Promise((next) => setTimeout(next, 5));
    expect((await remove()).status).toBe(200);
    const { status, body } = await running;
    expect([status, body.data.output]).toEqual([200, 'late']);
    const { turns } = (await service.get(`/v1/sessions/${body.data.session_id}`)).body.data;
    expect(turns).toMatchObject([{ status: 'completed', output: 'late' }]);
  });

  test('can be erased still; an erased one neither changes nor is deleted', async () => {
    await remove();
    expect((await service.send('POST', `${path}/erase`, '')).status).toBe(200);
    for (const answer of [
      await patch({ name: 'x' }),
      await put({ name: 'x', instruction: 'x', model: 'scripted' }),
      await remove(),
      await service.get(`${path}/revisions`),
    ])
      expectFailure(answer, 'agent_erased');
  });
});

describe('the revisions of an agent', () => {
  beforeEach(async () => {
    for (const name of ['Two', 'Three', 'Four']) await patch({ name });
  });
  const names = ({ body }: Reply): string[] => body.data.map(({ name }: { name: string }) => name);

  test('are what it was, newest first or oldest first, with their texts', async () => {
    const all = await service.get(`${path}/revisions`);
    expect(names(all)).toEqual(['Four', 'Three', 'Two', 'One']);
    expect(all.body.data[3]).toEqual({
      revision: 0,
      change: 'created',
      name: 'One',
      config: {
        agent_id: agent,
        name: 'One',
        instruction: 'be one',
        model: 'scripted',
        tool: 'calculator',
      },
      component: 'Chat',
      recorded_at: all.body.data[3].recorded_at,
    });
    expect(names(await service.get(`${path}/revisions?order=oldest`))).toEqual([
      'One',
      'Two',
      'Three',
      'Four',
    ]);
  });

  test.each(['newest', 'oldest'])(
    'come in pages, %s first, that leave out and repeat none',
    async (order) => {
      const found: string[] = [];
      let next: string | undefined = `${path}/revisions?order=${order}&limit=3`;
      const sizes: number[] = [];
      while (next !== undefined) {
        const page = await service.get(next);
        sizes.push(page.body.data.length);
        found.push(...names(page));
        next = /^<(.+)>; rel="next"$/.exec(page.headers.get('link') ?? '')?.[1];
      }
      expect(sizes).toEqual([3, 1]);
      const oldestFirst = ['One', 'Two', 'Three', 'Four'];
      expect(found).toEqual(order === 'oldest' ? oldestFirst : oldestFirst.toReversed());
    },
  );

  test('beyond the last, and before the first, are none', async () => {
    expect(names(await service.get(`${path}/revisions?after=99`))).toHaveLength(4);
    expect(names(await service.get(`${path}/revisions?after=0`))).toEqual([]);
    expect(names(await service.get(`${path}/revisions?order=oldest&after=99`))).toEqual([]);
    expectFailure(await service.get(`${path}/revisions?order=up`), 'invalid_request');
  });
});
