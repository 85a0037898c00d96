import { expect, test } from '@jest/globals';
import { rm } from 'node:fs/promises';
import { runCli } from '../../support/processes/cliProcess.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

test('limits and quotas of an account are set, shown and cleared; a quota of 0 is none', async () => {
  const folder = await temporaryFolder();
  try {
    const account_id = (await runCli(folder, 'accounts', 'open', 'one')).out.trimEnd();
    const limits = (...options: string[]) =>
      runCli(folder, 'accounts', 'limits', account_id, ...options);
    await limits('--runs', '3', '--bytes-per-day', '1000000', '--audits-per-day', '0');
    expect((await limits('--events', '5000')).out).toBe(
      'audits_per_day=0 bytes_per_day=1000000 events=5000 runs=3\n',
    );
    expect((await limits('--clear', '--events-per-day', '7')).out).toBe('events_per_day=7\n');
    const wrong = await limits('--runs', '0');
    expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining('positive integer')]);
    expect((await limits('--events', '1000000000000000')).err).toContain('at most 15 digits');
  } finally {
    await rm(folder, { recursive: true });
  }
});
