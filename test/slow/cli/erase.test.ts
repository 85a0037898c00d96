import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { currentGeneration, generationFile } from '../../../infra/sqlite/readModels/generations.ts';
import { HOLDS_ERASED } from '../../../infra/sqlite/readModels/wordIndex.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';
import { expectFailure } from '../../support/http/failures.ts';
import { expectGone, filesHolding, newMarker } from '../../support/stores/erasure/holding.ts';
import { runCli } from '../../support/processes/cliProcess.ts';
import { asOperator, clientWith, eventually, newKey } from '../../support/processes/operator.ts';

let service: TestService;
let marker: string;
beforeEach(async () => {
  marker = newMarker();
  service = await startTestService(({ messages }) => ({ text: `re: ${messages.at(-1)!.content}` }));
}, 30_000);
afterEach(async () => {
  await service.close();
  await rm(service.folder, { recursive: true, force: true });
});

test('an account is erased beside a running server: its keys, its sessions and its agents, and nobody else’s', async () => {
  const key = await newKey(service.folder, { name: marker });
  const client = await clientWith(service.url, key);
  const agent = (
    await client.post('/v1/agents', { name: marker, instruction: marker, model: 'scripted' })
  ).body.data.agent_id as string;
  for (let turn = 0; turn < 3; turn += 1)
    await client.post(`/v1/agents/${agent}/run`, { input: marker });
  const own = (
    await service.post(`/v1/agents/${await service.createAgent()}/run`, { input: 'mine' })
  ).body.data.session_id as string;
  const erase = ['accounts', 'erase', key.account_id, '--confirm'];
  // The account's own name and its key's stand in the read models as well.
  expect((await runCli(service.folder, 'accounts', 'list')).out).toContain(marker);

  const refused = await runCli(service.folder, ...erase, 'acct_another');
  expect([refused.code, refused.out]).toEqual([2, '']);
  expect((await client.get('/v1/agents')).status).toBe(200);

  const done = await runCli(service.folder, '--json', ...erase, key.account_id);
  const erased = JSON.parse(done.out) as { sessions: number; agents: number };
  expect(erased).toMatchObject({ account_id: key.account_id, unrecorded: [] });
  // The server continues an erasure that it sees begun, so on a busy machine it takes a part of it.
  expect(erased.sessions).toBeLessThanOrEqual(3);
  expect(erased.agents).toBeLessThanOrEqual(1);
  const log = (await runCli(service.folder, '--json', 'events', 'tail', '--no-follow')).out;
  expect(log.match(/"type":"session.erased.v1"/g)).toHaveLength(3);
  expect(log.match(/"type":"agent.erased.v1"/g)).toHaveLength(1);
  await eventually(
    () => client.get('/v1/agents'),
    ({ status }) => status === 401,
  );
  await expectGone(service.folder, marker);
  expect((await service.get(`/v1/sessions/${own}`)).status).toBe(200);

  const again = await runCli(service.folder, '--json', ...erase, key.account_id);
  expect([again.code, JSON.parse(again.out)]).toMatchObject([0, { sessions: 0, agents: 0 }]);
  const issue = await runCli(service.folder, 'keys', 'issue', '--account', key.account_id);
  expect([issue.code, issue.err]).toEqual([1, 'The account was erased.\n']);
  const listed = await runCli(service.folder, 'accounts', 'list');
  expect(listed.out).not.toContain(key.account_id);
}, 120_000);

test('a session and an agent are erased with no server running, and no file holds them', async () => {
  const agent = await service.createAgent({ name: marker, instruction: marker });
  const input = `${marker}${' '.repeat(400_000)}`;
  const run = (more = {}) => service.post(`/v1/agents/${agent}/run`, { input, ...more });
  const session = (await run()).body.data.session_id as string;
  // So many that not all of them are deleted in one transaction.
  for (let turn = 2; turn <= 4; turn += 1) await run({ session_id: session });
  await eventually(
    () => service.get('/v1/sessions?q=re'),
    ({ body }) => body.data?.length === 1,
  );
  await service.service().stop();
  expect(filesHolding(service.folder, marker)).not.toEqual([]);
  for (const [kind, id] of [
    ['sessions', session],
    ['agents', agent],
  ] as const) {
    const { code, out } = await runCli(service.folder, kind, 'erase', id, '--confirm', id);
    expect([code, out]).toEqual([0, expect.stringContaining(`${id} is erased: event `)]);
  }
  const file = generationFile(service.folder, currentGeneration(service.folder)!);
  const database = new DatabaseSync(file, { readOnly: true });
  const words = database.prepare('SELECT count(*) AS terms FROM word_index_idx WHERE segid > 0');
  expect([words.get()!['terms'], database.prepare(HOLDS_ERASED).get()!['holds']]).toEqual([0, 0]);
  database.close();
  await expectGone(service.folder, marker);
}, 120_000);

const change = (file: string, sql: string): void => {
  const database = new DatabaseSync(join(service.folder, file));
  database.exec(sql);
  database.close();
};

test('whose keys are lost is erased all the same: its session, and the account, damaged as it is', async () => {
  const key = await newKey(service.folder, { name: marker });
  const client = await clientWith(service.url, key);
  const agent = { name: marker, instruction: marker, model: 'scripted' };
  const { agent_id } = (await client.post('/v1/agents', agent)).body.data;
  const run = async () => (await client.post(`/v1/agents/${agent_id}/run`, { input: marker })).body;
  const session = (await run()).data.session_id as string;
  await run();
  await service.service().stop();
  change('keys.db', 'DELETE FROM text_keys');
  const erase = ['sessions', 'erase', session, '--confirm', session];
  expect((await runCli(service.folder, ...erase)).code).toBe(0);

  change(
    'events.db',
    `DELETE FROM events WHERE stream = 'account-${key.account_id}' AND revision = 0`,
  );
  const eraseAll = ['accounts', 'erase', key.account_id, '--confirm', key.account_id];
  const refused = await runCli(service.folder, ...eraseAll);
  expect([refused.code, refused.err]).toEqual([
    1,
    expect.stringMatching(/is damaged: .*begins at revision 1.*--damaged/),
  ]);
  const { out } = await runCli(service.folder, '--json', ...eraseAll, '--damaged');
  expect(JSON.parse(out)).toMatchObject({ sessions: 1, agents: 1, unrecorded: [], unowned: [] });
  await expectGone(service.folder, marker);
}, 120_000);

test('a session that nobody has is not erased', async () => {
  const nobody = 'session_01kahz1c3sf6w9m3v5q7x9z1a3';
  const missing = await runCli(service.folder, 'sessions', 'erase', nobody, '--confirm', nobody);
  expect([missing.code, missing.err]).toEqual([1, `There is no session ${nobody}.\n`]);
}, 120_000);

test('what an operator erases beside a server, the server lets go of', async () => {
  const agent = await service.createAgent();
  const session = (await service.post(`/v1/agents/${agent}/run`, { input: marker })).body.data
    .session_id as string;
  service.model.use({ fault: 'never_answer' });
  const running = service.post(`/v1/agents/${agent}/run`, { input: marker, session_id: session });
  await service.model.received(2);
  const erase = ['sessions', 'erase', session, '--confirm', session];
  expect((await runCli(service.folder, ...erase)).code).toBe(0);
  expectFailure(await running, 'session_erased');
  await expectGone(service.folder, marker);
  expect(await asOperator(service.folder, ({ store }) => store.keys.listErasures(1))).toEqual([]);
}, 120_000);
