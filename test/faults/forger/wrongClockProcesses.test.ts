/** Real processes whose clocks are wrong from their start on: each one records a run, and is killed. */
import { afterEach, expect, test } from '@jest/globals';
import { setRetention } from '../../../shared/accounts/commands.ts';
import { expectFailure } from '../../support/http/failures.ts';
import { apiClient, TEST_KEY, type Client } from '../../support/http/service.ts';
import { size } from '../../support/jest/size.ts';
import { runCliWith, type CliResult } from '../../support/processes/cliProcess.ts';
import { asOperatorOn } from '../../support/processes/operator.ts';
import {
  startServerProcess,
  withClockAhead,
  type ServerProcess,
} from '../../support/processes/serverProcess.ts';
import { forgedStores, type ForgedStores } from '../../support/stores/forger/forgedService.ts';

const DAY_MS = 86_400_000;
const AHEAD_DAYS = size({
  small: [40, 40, -400],
  full: [40, 40, 1, 2, -1, 400, 3_650, -3_650, -400, 40, 3, -20_000],
});

let stores: ForgedStores;
let server: ServerProcess | undefined;
afterEach(async () => {
  await kill();
  await stores.close();
});

async function start(aheadMs = 0): Promise<Client> {
  server = startServerProcess({
    ...stores.env,
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

const cli = (...args: string[]): Promise<CliResult> => runCliWith(stores.env, ...args);

const shown = async (): Promise<{ proven_time: string }> =>
  JSON.parse((await cli('retention', 'show', '--json')).out) as { proven_time: string };

test.each(await forgedStores())(
  'no start on $name with a wrong clock ends a minimum, or sets the proven time ahead',
  async ({ open }) => {
    stores = await open();
    let client = await start();
    const agent = { name: 'Test', instruction: 'Be brief.', model: 'offline-echo' };
    const { agent_id } = (await client.post('/v1/agents', agent)).body.data as { agent_id: string };
    const run = async (): Promise<string> =>
      (await client.post(`/v1/agents/${agent_id}/run`, { input: 'hi' })).body.data
        .session_id as string;
    const session = await run();
    const account = await asOperatorOn(stores.env, async (operator) => {
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
    const confirm = (...args: string[]) => cli('retention', 'confirm', ...args);
    const reason = ['--reason', 'The clock is right.'];
    expect((await confirm('clock', ...reason)).code).toBe(2);
    const wrong = await confirm('clock', '--today', '2031-01-01', ...reason);
    expect([wrong.code, wrong.err]).toEqual([1, expect.stringMatching(/Set it right first/)]);
    const today = new Date().toISOString().slice(0, 10);
    expect((await confirm('clock', '--today', today, ...reason)).code).toBe(0);
    expect(Date.now() - Date.parse((await shown()).proven_time)).toBeLessThan(60_000);
    expect((await confirm(account, ...reason)).code).toBe(0);
    const { out } = await cli('events', 'tail', '--no-follow');
    for (const type of ['time_kept', 'time_confirmed', 'erasures_confirmed'])
      expect(out).toContain(`"retention.${type}.v1"`);
    expect(await cli('audit', 'verify')).toMatchObject({ code: 0 });
  },
  size({ small: 60_000, full: 300_000 }),
);
