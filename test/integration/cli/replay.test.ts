import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startTestService, type TestService } from '../../support/http/service.ts';
import { startCliWith, type CliResult } from '../../support/processes/cliProcess.ts';

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
  expect({ code, err }).toEqual({ code: 0, err: '' });
  const replay = JSON.parse(out) as { replay_id: string };
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

test('where nothing can be said it ends with 3: all turns were skipped, or no check was of any', async () => {
  const agent = await service.createAgent();
  service.model.use({ status: 400 });
  await service.post(`/v1/agents/${agent}/run`, { input: 'Hi?' });
  service.model.use({ text: 'Hello, you.' });
  const { out, code } = await cli(...started, '--agent', agent, '--watch');
  expect([code, JSON.parse(out)]).toMatchObject([
    3,
    { status: 'completed', regressed: null, sums: { turns: { skipped: 1, total: 1 } } },
  ]);
  const elsewhere = await checksFile([{ turn: 9, contains: 'Hello' }]);
  const unchecked = await cli(...started, '--session', session, '--watch', '--checks', elsewhere);
  expect([unchecked.code, JSON.parse(unchecked.out).regressed]).toEqual([3, null]);
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
    [2, '2 problems:\n  TURNLOG_URL must be set\n  TURNLOG_API_KEY must be set'],
  ],
  ['no key', { TURNLOG_API_KEY: '' }, ['show', 'x'], [2, 'TURNLOG_API_KEY']],
  ['a wrong key', { TURNLOG_API_KEY: 'wrong' }, ['show', 'x'], [1, 'unauthorized']],
  ['a replay that is not there', {}, ['show', 'x'], [1, 'replay_not_found']],
  ['a budget that is no number', {}, ['start', '--all', '--budget', 'much'], [2, '--budget']],
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
