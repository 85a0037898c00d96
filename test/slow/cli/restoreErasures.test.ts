/** Erasures that are repeated by `restore` although an account keeps its sessions for a while. */
import { randomUUID } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startTestService, type TestService } from '../../support/http/service.ts';
import { runCli, startCliProcess } from '../../support/processes/cliProcess.ts';
import { eventually } from '../../support/processes/operator.ts';
import { withClockAhead } from '../../support/processes/serverProcess.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

const DAY_MS = 86_400_000;

let service: TestService;
let elsewhere: string;
let account: string;
const sessions: string[] = [];
/** Receipts of the erasures of sessions, which came after both backups. */
let receipts: string;
/** A backup of an account that keeps its sessions for 30 days, and one while it is on hold. */
let kept: string;
let held: string;

const newFolder = (): string => join(elsewhere, randomUUID());

async function cli(...args: string[]): Promise<string> {
  const { code, out, err } = await runCli(service.folder, ...args);
  expect({ code, err }).toMatchObject({ code: 0 });
  return out;
}

async function backUp(): Promise<string> {
  const folder = newFolder();
  await cli('backup', folder);
  return folder;
}

/** `restore`, in so many days. */
async function restore(days: number, data: string, ...args: string[]) {
  const env = { DATA_DIR: data, ...withClockAhead(days * DAY_MS) };
  const { code, out, err } = await startCliProcess(env, '--json', 'restore', ...args).ended;
  const { error, ...result } = JSON.parse(out || (err.trim().split('\n').at(-1) ?? '{}'));
  return { code, reason: error?.message, ...result };
}

beforeAll(async () => {
  elsewhere = await temporaryFolder();
  receipts = newFolder();
  await mkdir(receipts);
  service = await startTestService();
  [{ account_id: account }] = JSON.parse(await cli('accounts', 'list', '--json'));
  await cli('accounts', 'retention', account, '--minimum-days', '30');
  // The proven time is recorded before the sessions, and not again before the backup.
  await service.restart();
  await eventually(
    () => cli('--json', 'retention', 'show'),
    (shown) => JSON.parse(shown).proven_time !== null,
  );
  const agent = await service.createAgent();
  for (let at = 0; at < 2; at += 1) {
    const { body } = await service.post(`/v1/agents/${agent}/run`, { input: 'x' });
    sessions.push(body.data.session_id as string);
  }
  kept = await backUp();
  await cli('accounts', 'hold', account, 'on', '--reason', 'a case');
  held = await backUp();
  await cli('accounts', 'hold', account, 'off');
  await cli('accounts', 'retention', account, '--minimum-days', 'none');
  const [first] = sessions;
  expect((await service.send('DELETE', `/v1/sessions/${first}`, '')).status).toBe(200);
  const receipt = ['audit', 'receipt', first!, '--out', join(receipts, 'first.json')];
  await eventually(
    () => runCli(service.folder, ...receipt),
    ({ code }) => code === 0,
  );
}, 60_000);
afterAll(async () => {
  await service.close();
  await rm(elsewhere, { recursive: true });
});

test('a receipt proves that the minimum was over, and not that a hold has ended', async () => {
  const proven = ['--receipts', receipts, '--accept-restored', 'a disk broke'];
  expect(await restore(0, newFolder(), kept, ...proven)).toMatchObject({
    code: 0,
    erasures: [{ id: sessions[0], outcome: 'erased_again' }],
  });
  expect(await restore(0, newFolder(), held, ...proven)).toMatchObject({
    code: 1,
    reason: expect.stringContaining('legal hold'),
  });
}, 60_000);

test('an erasure without a receipt is repeated once the date that an operator confirms is past the minimum', async () => {
  const ids = newFolder();
  await writeFile(ids, `${sessions[1]}\n`);
  const data = newFolder();
  const listed = [kept, '--erased', ids];
  const refused = await restore(40, data, ...listed);
  expect(refused).toMatchObject({
    code: 1,
    reason: expect.stringMatching(/at least 30 days.*confirm it: add --today <date>\./),
  });
  expect(refused.reason).not.toContain('retention confirm');
  const dateIn = (days: number): string =>
    new Date(Date.now() + days * DAY_MS).toISOString().slice(0, 10);
  expect(await restore(20, data, ...listed, '--today', dateIn(20))).toMatchObject({
    code: 1,
    reason: expect.stringContaining('at least 30 days'),
  });
  expect(await restore(40, data, ...listed, '--today', dateIn(80))).toMatchObject({
    code: 1,
    reason: expect.stringContaining('Set it right first'),
  });
  expect(await restore(40, data, ...listed, '--today', dateIn(40))).toMatchObject({
    code: 0,
    erasures: [{ id: sessions[1], outcome: 'erased_again' }],
  });
  const shown = JSON.parse((await runCli(data, '--json', 'retention', 'show')).out);
  expect(shown.proven_time.slice(0, 10)).toBe(dateIn(40));
}, 60_000);
