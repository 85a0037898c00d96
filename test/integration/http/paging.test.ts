import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { routes } from '../../../services/api/features.ts';
import { expectFailure } from '../../support/http/failures.ts';
import { startTestService, type Reply, type TestService } from '../../support/http/service.ts';

let service: TestService;
let agents: string[];
/** Newest first, as they are listed. */
let sessions: string[];
const webhooks: string[] = [];
let tools: string[];
/** The one that has five turns. */
let long: string;

beforeAll(async () => {
  service = await startTestService();
  agents = [];
  for (let index = 0; index < 5; index += 1)
    agents.push(await service.createAgent({ name: `Agent ${index}` }));
  const run = async (agent: string, session_id?: string) =>
    (
      await service.post(`/v1/agents/${agent}/run`, {
        input: 'hi',
        ...(session_id && { session_id }),
      })
    ).body.data.session_id as string;
  sessions = [];
  for (const agent of agents) sessions.unshift(await run(agent));
  long = sessions[0]!;
  for (let nth = 0; nth < 3; nth += 1) {
    const url = `https://[3ffe::1]/${nth}`;
    webhooks.push((await service.post('/v1/webhooks', { url })).body.data.webhook_id as string);
  }
  tools = (await service.get('/v1/tools')).body.data.map(({ name }: { name: string }) => name);
  for (let turn = 2; turn <= 5; turn += 1) await run(agents[4]!, long);
});
afterAll(() => service.close());

const nextOf = ({ headers }: Reply): string | undefined =>
  /^<([^>]+)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1];

/** All pages from `path` on, by following the Link headers. */
async function pagesFrom(path: string): Promise<Reply[]> {
  const pages = [await service.get(path)];
  for (let next = nextOf(pages[0]!); next !== undefined; next = nextOf(pages.at(-1)!))
    pages.push(await service.get(next));
  return pages;
}

const rowsOf = ({ body }: Reply): Record<string, unknown>[] =>
  (Array.isArray(body.data) ? body.data : body.data.turns) as Record<string, unknown>[];

test('every list is paged by limit and after', () => {
  const lists = routes.filter(
    ({ method, data }) => method === 'get' && (data as { type?: string }).type === 'array',
  );
  expect(lists.length).toBeGreaterThan(10);
  for (const { path, query } of lists)
    expect([path, Object.keys(query?.properties ?? {})]).toEqual([
      path,
      expect.arrayContaining(['limit', 'after']),
    ]);
});

test.each(['/v1/models', '/v1/tools'])('%s has no page after an unknown entry', async (path) => {
  const { details } = expectFailure(await service.get(`${path}?after=none`), 'position_unknown');
  expect(details).toHaveProperty('after');
});

test.each([
  ['agents', () => '/v1/agents', () => `/v1/agents/${agents[0]}`],
  ['sessions', () => '/v1/sessions', () => `/v1/sessions/${sessions[0]}`],
  ['webhooks', () => '/v1/webhooks', () => `/v1/webhooks/${webhooks[0]}`],
])('rows of %s carry the revision that the object has', async (_what, list, one) => {
  const { data } = (await service.get(one())).body;
  expect(data.revision).toEqual(expect.any(Number));
  const rows = (await service.get(list())).body.data as Record<string, unknown>[];
  const key = Object.keys(data).find((name) => name.endsWith('_id'))!;
  expect(rows.find((row) => row[key] === data[key])).toMatchObject({ revision: data.revision });
});

describe.each([
  ['agents', () => '/v1/agents', 'agent_id', () => agents],
  ['sessions', () => '/v1/sessions', 'session_id', () => sessions],
  ['the turns of a session', () => `/v1/sessions/${long}`, 'turn', () => [1, 2, 3, 4, 5]],
  [
    'the events of a session',
    () => `/v1/sessions/${long}/events`,
    'revision',
    () => Array.from({ length: 11 }, (_, index) => index),
  ],
  ['webhooks', () => '/v1/webhooks', 'webhook_id', () => webhooks],
  ['models', () => '/v1/models', 'id', () => ['scripted', 'narrow']],
  ['tools', () => '/v1/tools', 'name', () => tools],
])('paging through %s', (_what, path, key, all) => {
  test.each([1, 2, 3])('by %i leads through all of them in order, each once', async (limit) => {
    const pages = await pagesFrom(`${path()}?limit=${limit}`);
    expect(pages.flatMap(rowsOf).map((row) => row[key])).toEqual(all());
    expect(pages.map((page) => rowsOf(page).length)).toEqual(
      Array.from({ length: Math.ceil(all().length / limit) }, (_, page) =>
        Math.min(limit, all().length - page * limit),
      ),
    );
  });

  test('has no next page when the last entry is on this one, also when the page is exactly full', async () => {
    for (const limit of [all().length, all().length + 1, 1000])
      expect(nextOf(await service.get(`${path()}?limit=${limit}`))).toBeUndefined();
    expect(nextOf(await service.get(`${path()}?limit=${all().length - 1}`))).toBeDefined();
  });

  test('answers nothing after the last entry', async () => {
    const page = await service.get(`${path()}?after=${all().at(-1)}`);
    expect([page.status, rowsOf(page), nextOf(page)]).toEqual([200, [], undefined]);
  });

  test('keeps the other parameters in the link', async () => {
    const next = nextOf(await service.get(`${path()}?pretty=true&limit=1`));
    expect(Object.fromEntries(new URL(next!, service.url).searchParams)).toEqual({
      pretty: 'true',
      limit: '1',
      after: String(all()[0]),
    });
  });

  test.each([
    '0',
    '-1',
    '1001',
    '1.5',
    'ten',
    '',
    '1e9',
    '9'.repeat(400),
    '0x10',
    '1e2',
    '%2B1',
    '%201',
    '1%20',
    '01',
    '1.0',
    '１',
  ])('refuses the limit %j and says what is allowed', async (limit) => {
    const { details } = expectFailure(
      await service.get(`${path()}?limit=${limit}`),
      'invalid_request',
    );
    expect(details).toEqual({
      limit: { message: expect.stringMatching(/integer|>= 1|<= 1000/), path: 'query/limit' },
    });
  });

  test('refuses a parameter that is given twice', async () => {
    const { details } = expectFailure(
      await service.get(`${path()}?limit=1&limit=2`),
      'invalid_request',
    );
    expect(details).toEqual({
      limit: { message: '"limit" must be given once.', path: 'query/limit' },
    });
  });

  test('refuses an empty cursor, and one of another kind or one with a NUL', async () => {
    for (const after of ['', '%00', 'x'.repeat(257)])
      expectFailure(await service.get(`${path()}?after=${after}`), 'invalid_request');
  });
});

test.each(['-1', '1e300', '99999999999999999999', 'NaN', 'first'])(
  'turns and events are not numbered %s',
  async (after) => {
    for (const path of [`/v1/sessions/${long}`, `/v1/sessions/${long}/events`])
      expectFailure(await service.get(`${path}?after=${after}`), 'invalid_request');
  },
);

test.each([
  ['/v1/agents', 'after', 'agent', ['xyz', 'z', 'session_01kahz1c3sf6w9m3v5q7x9z1a3']],
  [
    '/v1/agents',
    'after',
    'agent',
    ['agent_8zzzzzzzzzzzzzzzzzzzzzzzzz', 'agent_01KAHZ0B2RE5V8K2S4N6T8W0Y2'],
  ],
  ['/v1/sessions', 'after', 'session', ['xyz', 'agent_01kahz0b2re5v8k2s4n6t8w0y2']],
  ['/v1/sessions', 'agent_id', 'agent', ['unknown', '%0A', 'session_01kahz1c3sf6w9m3v5q7x9z1a3']],
])(
  '%s takes as %s the id of the right kind and nothing else',
  async (path, field, kind, values) => {
    for (const value of values) {
      const { details } = expectFailure(
        await service.get(`${path}?${field}=${value}`),
        'invalid_request',
      );
      expect(details).toEqual({
        [field]: {
          message: expect.stringMatching(
            new RegExp(`^"${field}" must be the id of an? ${kind}, such as ${kind}_`),
          ),
          path: `query/${field}`,
        },
      });
    }
  },
);

test('sessions can be narrowed down to one agent, page by page', async () => {
  expect((await pagesFrom(`/v1/sessions?agent_id=${agents[2]}&limit=1`)).flatMap(rowsOf)).toEqual([
    expect.objectContaining({ session_id: sessions[2], agent_id: agents[2] }),
  ]);
  const nobodys = 'agent_00000000000000000000000000';
  expect((await service.get(`/v1/sessions?agent_id=${nobodys}`)).body.data).toEqual([]);
});

test('the list of agents is complete without a limit, and begins after the cursor', async () => {
  expect(rowsOf(await service.get('/v1/agents')).map(({ agent_id }) => agent_id)).toEqual(agents);
  expect(
    rowsOf(await service.get(`/v1/agents?after=${agents[1]}`)).map(({ agent_id }) => agent_id),
  ).toEqual(agents.slice(2));
});
