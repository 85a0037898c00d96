import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { LIMITS } from '../../../shared/limits.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';
import { startCliWith, type CliResult } from '../../support/processes/cliProcess.ts';
import { freePort } from '../../support/processes/freePort.ts';

let service: TestService;
let session: string;

beforeAll(async () => {
  service = await startTestService();
  const agent = await service.createAgent();
  const { body } = await service.post(`/v1/agents/${agent}/run`, { input: 'Hi?' });
  session = body.data.session_id as string;
});
afterAll(() => service.close());

const cliWith = (env: Record<string, string>, ...args: string[]) =>
  startCliWith(env, 'replay', ...args);
const there = () => ({ TURNLOG_URL: service.url, TURNLOG_API_KEY: service.key });
const cli = (...args: string[]): Promise<CliResult> => cliWith(there(), ...args).ended;
const started = ['--json', 'start', '--budget', '1000'];

async function checksFile(checks: object): Promise<string> {
  const file = join(service.folder, '..', 'checks.json');
  await writeFile(file, JSON.stringify(checks));
  return file;
}

test('a replay that comes out the same ends with 0, and is shown as JSON', async () => {
  service.model.use({ text: 'Hello.' });
  const { code, out, err } = await cli(...started, '--session', session, '--watch');
  const replay = JSON.parse(out) as { replay_id: string };
  const { replay_id } = replay;
  expect([code, JSON.parse(err)]).toEqual([0, { replay_id }]);
  expect(replay).toMatchObject({
    status: 'completed',
    regressed: false,
    sums: { turns: { same: 1 } },
  });
  const shown = await cli('--json', 'show', replay.replay_id);
  expect(JSON.parse(shown.out)).toEqual(replay);
  const watched = await cli('watch', replay.replay_id);
  expect(watched.code).toBe(0);
  expect(watched.out).toContain('completed: 1 same, 0 changed');
});

test('an answer that changed is a regression where there are no checks, and none where they pass', async () => {
  service.model.use({ text: 'Hello, you.' });
  const changed = await cli(...started, '--session', session, '--watch');
  expect([changed.code, JSON.parse(changed.out).regressed]).toEqual([1, true]);
  const passing = await checksFile([{ contains: 'Hello' }]);
  const passed = await cli(...started, '--session', session, '--watch', '--checks', passing);
  expect([passed.code, JSON.parse(passed.out).regressed]).toEqual([0, false]);
  const failing = await checksFile([{ contains: 'Bye' }]);
  const failed = await cli(...started, '--session', session, '--watch', '--checks', failing);
  expect([failed.code, JSON.parse(failed.out).sums.checks]).toEqual([1, { passed: 0, failed: 1 }]);
});

test('where nothing can be said it ends with 3: all turns were skipped', async () => {
  const agent = await service.createAgent();
  service.model.use({ status: 400 });
  await service.post(`/v1/agents/${agent}/run`, { input: 'Hi?' });
  service.model.use({ text: 'Hello, you.' });
  const { out, code } = await cli(...started, '--agent', agent, '--watch');
  expect([code, JSON.parse(out)]).toMatchObject([
    3,
    { status: 'completed', regressed: null, sums: { turns: { skipped: 1, total: 1 } } },
  ]);
});

test('a session that could not be replayed is counted, though none of its turns failed', async () => {
  const agent = await service.createAgent();
  const { data } = (await service.post(`/v1/agents/${agent}/run`, { input: 'Hi?' })).body;
  const replaced = ['--session', data.session_id as string, '--agent-revision', '7'];
  const { out, code } = await cli('start', ...replaced, '--watch');
  expect([code, out]).toEqual([
    1,
    expect.stringContaining('0 failed, 0 skipped of 1 turns; 1 of 1 sessions failed or stopped;'),
  ]);
});

test('the replays of the account are listed, newest first and page by page', async () => {
  const { out } = await cli(...started, '--session', session);
  const { replay_id } = JSON.parse(out) as { replay_id: string };
  const listed = JSON.parse((await cli('--json', 'list')).out) as { replay_id: string }[];
  expect([listed[0]!.replay_id, listed.length > 1]).toEqual([replay_id, true]);
  const next = await cli('--json', 'list', '--limit', '1', '--after', replay_id);
  expect(JSON.parse(next.out)).toMatchObject([{ replay_id: listed[1]!.replay_id }]);
  const table = await cli('list', '--limit', '1');
  expect(table.out).toMatch(/^REPLAY +CREATED +RESULT\nreplay_/);
  expect((await cli('list', '--limit', 'x')).code).toBe(2);
});

test('a replay is started without a budget: the service states it', async () => {
  const { out } = await cli('--json', 'start', '--session', session);
  const { replay_id } = JSON.parse(out) as { replay_id: string };
  const { settings } = (await service.get(`/v1/replays/${replay_id}`)).body.data;
  expect(settings.budget).toEqual({ tokens: LIMITS.replays.defaultBudgetTokens });
});

test('a replay that is watched goes on when the watching is interrupted', async () => {
  const answered = Promise.withResolvers<undefined>();
  service.model.use(async () => ({ text: (await answered.promise) ?? 'Hello.' }));
  const { out } = await cli(...started, '--session', session);
  const { replay_id } = JSON.parse(out) as { replay_id: string };
  const watching = cliWith(there(), 'watch', replay_id);
  await watching.told((text) => text.includes('running'));
  const shown = await cli('--json', 'show', replay_id);
  expect([shown.code, JSON.parse(shown.out)]).toMatchObject([
    3,
    { status: 'running', regressed: null },
  ]);
  watching.kill('SIGINT');
  expect((await watching.ended).code).toBe(130);
  answered.resolve(undefined);
  const again = await cli('--json', 'watch', replay_id);
  expect([again.code, JSON.parse(again.out).status]).toEqual([0, 'completed']);
});

test('who starts and watches learns at once which replay it is, and may watch it again', async () => {
  const answered = Promise.withResolvers<undefined>();
  service.model.use(async () => ({ text: (await answered.promise) ?? 'Hello.' }));
  const watching = cliWith(there(), ...started, '--session', session, '--watch');
  let replayId = '';
  await watching.told((text) => {
    replayId = /^\{"replay_id":"(\w+)"\}$/m.exec(text)?.[1] ?? '';
    return replayId !== '';
  });
  watching.kill('SIGINT');
  expect((await watching.ended).code).toBe(130);
  answered.resolve(undefined);
  expect((await cli('watch', replayId)).code).toBe(0);
});

test('a replay whose answer was lost is not started twice', async () => {
  service.model.use({ text: 'Hello.' });
  const count = async () =>
    (await service.get('/v1/replays?limit=1000')).body.data.length as number;
  const before = await count();
  let lost = 0;
  const proxy = createServer((request, response) => {
    const { method, url, headers } = request;
    void (async () => {
      const sent: Buffer[] = [];
      for await (const chunk of request) sent.push(chunk as Buffer);
      const answer = await fetch(service.url + url!, {
        method: method!,
        headers: {
          'content-type': 'application/json',
          'x-api-key': String(headers['x-api-key']),
          'idempotency-key': String(headers['idempotency-key']),
        },
        body: Buffer.concat(sent),
      });
      const text = await answer.text();
      lost += 1;
      if (lost < 3) response.destroy();
      else response.writeHead(answer.status, { 'content-type': 'application/json' }).end(text);
    })();
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  try {
    const TURNLOG_URL = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const env = { ...there(), TURNLOG_URL };
    const { code, err } = await cliWith(env, ...started, '--session', session).ended;
    expect({ code, err, lost }).toEqual({ code: 0, err: '', lost: 3 });
    expect(await count()).toBe(before + 1);
  } finally {
    proxy.close();
  }
});

test('a request that a proxy limits or cannot pass on is sent again, though the proxy gives no advice', async () => {
  const statuses = [429, 502];
  const proxy = createServer((_request, response) => {
    const status = statuses.shift() ?? 200;
    response.writeHead(status).end(status === 200 ? '{"success":true,"data":[]}' : '<html>');
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  try {
    const TURNLOG_URL = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const { code, err } = await cliWith({ ...there(), TURNLOG_URL }, 'list').ended;
    expect({ code, err, statuses }).toEqual({ code: 0, err: '', statuses: [] });
  } finally {
    proxy.close();
  }
});

test.each(['{}', 'null', '{"data":null}', '<html>'])(
  'another server than the service, which answers %s, is named',
  async (body) => {
    const other = createServer((_request, response) => {
      response.end(body);
    }).listen(0, '127.0.0.1');
    await once(other, 'listening');
    try {
      const TURNLOG_URL = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
      for (const args of [['list'], ['show', 'x'], ['watch', 'x']])
        expect(await cliWith({ ...there(), TURNLOG_URL }, ...args).ended).toMatchObject({
          code: 1,
          err: `The server at ${TURNLOG_URL} is not the API of Turnlog: set TURNLOG_URL to its address.\n`,
        });
    } finally {
      other.close();
    }
  },
  30_000,
);

test('the key goes to the address that was named, and no further', async () => {
  const heard: unknown[] = [];
  const other = createServer(({ headers }, response) => {
    heard.push(headers['x-api-key']);
    response.end('{"data":{}}');
  }).listen(0, '127.0.0.1');
  const addressOf = (server: Server) =>
    `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await once(other, 'listening');
  const named = createServer((_request, response) => {
    response.writeHead(307, { location: addressOf(other) }).end();
  }).listen(0, '127.0.0.1');
  await once(named, 'listening');
  try {
    const { code, err } = await cliWith({ ...there(), TURNLOG_URL: addressOf(named) }, 'show', 'x')
      .ended;
    expect({ code, heard }).toEqual({ code: 1, heard: [] });
    expect(err).toContain('307');
  } finally {
    for (const server of [named, other]) server.close();
  }
});

test.each<[string, Record<string, string>, string[], readonly [number, string]]>([
  ['no address', { TURNLOG_URL: '' }, ['show', 'x'], [2, 'TURNLOG_URL']],
  ['what is no address', { TURNLOG_URL: 'localhost:3000' }, ['show', 'x'], [2, 'TURNLOG_URL']],
  ['two addresses', { TURNLOG_URL: 'http://a http://b' }, ['show', 'x'], [2, 'TURNLOG_URL']],
  [
    'neither',
    { TURNLOG_URL: '', TURNLOG_API_KEY: '' },
    ['show', 'x'],
    [
      2,
      '2 problems:\n  TURNLOG_URL must be set, for example to http://127.0.0.1:3000\n  TURNLOG_API_KEY must be set, for example to the key that `npm run cli -- keys issue` prints',
    ],
  ],
  ['no key', { TURNLOG_API_KEY: '' }, ['show', 'x'], [2, 'TURNLOG_API_KEY']],
  ['a wrong key', { TURNLOG_API_KEY: 'wrong' }, ['show', 'x'], [1, 'unauthorized']],
  ['a replay that is not there', {}, ['show', 'x'], [1, 'replay_not_found']],
  ['a budget that is no number', {}, ['start', '--all', '--budget', 'much'], [2, '--budget']],
  ['an empty model', {}, ['start', '--all', '--budget', '5', '--model', ''], [2, '--model must']],
  [
    'an empty list of checks',
    {},
    ['start', '--all', '--budget', '5', '--checks', ''],
    [2, '--checks must not be empty'],
  ],
  [
    'an empty agent',
    {},
    ['start', '--all', '--budget', '5', '--with-agent', ''],
    [2, '--with-agent must not be empty'],
  ],
  ['an empty session', {}, ['start', '--session', '', '--budget', '5'], [2, '--session must']],
  ['no sessions', {}, ['start', '--budget', '5'], [2, '--all']],
  [
    'a file that is not there',
    {},
    ['start', '--all', '--budget', '5', '--checks', '/nowhere'],
    [2, '/nowhere'],
  ],
])('%s ends with a sentence and the code of it', async (_what, env, args, [code, said]) => {
  const { code: ended, err } = await cliWith({ ...there(), ...env }, ...args).ended;
  expect(ended).toBe(code);
  expect(err).toContain(said);
});

test.each<[string, () => Promise<Record<string, string>>, string]>([
  ['a wrong key', async () => ({ TURNLOG_API_KEY: 'wrong' }), 'unauthorized'],
  ['a replay that is not there', async () => ({}), 'replay_not_found'],
  [
    'no service',
    async () => ({ TURNLOG_URL: `http://127.0.0.1:${await freePort()}` }),
    'store_unavailable',
  ],
])('with --json, %s ends with a code that scripts can read', async (_what, env, code) => {
  const { err } = await cliWith({ ...there(), ...(await env()) }, '--json', 'show', 'x').ended;
  expect(JSON.parse(err)).toMatchObject({ error: { code } });
});
