/** Real processes whose clocks are wrong from their start on: each one records a run, and is killed. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { setRetention } from '../../../shared/accounts/commands.ts';
import { expectFailure } from '../../support/http/failures.ts';
import { apiClient, TEST_KEY, type Client } from '../../support/http/service.ts';
import { size } from '../../support/jest/size.ts';
import { runCli } from '../../support/processes/cliProcess.ts';
import { asOperator } from '../../support/processes/operator.ts';
import {
  startServerProcess,
  withClockAhead,
  type ServerProcess,
} from '../../support/processes/serverProcess.ts';

const DAY_MS = 86_400_000;
const AHEAD_DAYS = size({
  small: [40, 40, -400],
  full: [40, 40, 1, 2, -1, 400, 3_650, -3_650, -400, 40, 3, -20_000],
});

let folder: string;
let server: ServerProcess | undefined;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'turnlog-clocks-'));
});
afterEach(async () => {
  await kill();
  await rm(folder, { recursive: true, force: true });
});

async function start(aheadMs = 0): Promise<Client> {
  server = startServerProcess({
    DATA_DIR: folder,
    BOOTSTRAP_API_KEY: TEST_KEY,
    LOG_LEVEL: 'error',
    ...withClockAhead(aheadMs),
  });
  return apiClient(await server.ready, TEST_KEY);
}

async function kill(): Promise<void> {
  server?.kill('SIGKILL');
  await server?.exited;
}

const shown = async (): Promise<{ proven_time: string }> =>
  JSON.parse((await runCli(folder, 'retention', 'show', '--json')).out) as { proven_time: string };

test(
  'no start with a wrong clock ends a minimum, or sets the proven time ahead',
  async () => {
    let client = await start();
    const agent = { name: 'Test', instruction: 'Be brief.', model: 'offline-echo' };
    const { agent_id } = (await client.post('/v1/agents', agent)).body.data as { agent_id: string };
    const run = async (): Promise<string> =>
      (await client.post(`/v1/agents/${agent_id}/run`, { input: 'hi' })).body.data
        .session_id as string;
    const session = await run();
    const account = await asOperator(folder, async (operator) => {
      const [own] = await (await operator.readModels()).listAccounts();
      const { account_id } = own!;
      const actor = { account_id, key_id: 'operator', request_id: 'test' };
      await setRetention(operator, actor, { minimum_days: 10, maximum_days: 20 });
      return account_id;
    });
    await kill();
    for (const days of AHEAD_DAYS) {
      client = await start(days * DAY_MS);
      await run();
      expectFailure(await client.send('DELETE', `/v1/sessions/${session}`, {}), 'erasure_refused');
      expectFailure(await client.post(`/v1/agents/${agent_id}/erase`, {}), 'erasure_refused');
      await kill();
      expect(Date.parse((await shown()).proven_time)).toBeLessThanOrEqual(Date.now());
    }
    // An operator can confirm the clock only with the date of today, and says why.
    const confirm = (...args: string[]) => runCli(folder, 'retention', 'confirm', ...args);
    const reason = ['--reason', 'The clock is right.'];
    expect((await confirm('clock', ...reason)).code).toBe(2);
    const wrong = await confirm('clock', '--today', '2031-01-01', ...reason);
    expect([wrong.code, wrong.err]).toEqual([1, expect.stringMatching(/Set it right first/)]);
    const today = new Date().toISOString().slice(0, 10);
    expect((await confirm('clock', '--today', today, ...reason)).code).toBe(0);
    expect(Date.now() - Date.parse((await shown()).proven_time)).toBeLessThan(60_000);
    expect((await confirm(account, ...reason)).code).toBe(0);
    const { out } = await runCli(folder, 'events', 'tail', '--no-follow');
    for (const type of ['time_kept', 'time_confirmed', 'erasures_confirmed'])
      expect(out).toContain(`"retention.${type}.v1"`);
    expect(await runCli(folder, 'audit', 'verify')).toMatchObject({ code: 0 });
  },
  size({ small: 60_000, full: 300_000 }),
);
