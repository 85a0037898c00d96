import { rm } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { runCli } from '../../support/processes/cliProcess.ts';
import { ACCOUNT_SCOPES, SCOPES } from '../../../shared/accounts/events.ts';
import { expectFailure } from '../../support/http/failures.ts';
import { clientWith, eventually } from '../../support/processes/operator.ts';
import { apiClient, startTestService, type TestService } from '../../support/http/service.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

const KEY = /^tl_(key_[0-7][0-9a-hjkmnp-tv-z]{25})_[0-9a-f]{64}\n$/;

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

const cli = (...args: string[]) => runCli(service.folder, ...args);
const lines = (text: string): string[] => text.trimEnd().split('\n');

async function openAccount(name: string): Promise<string> {
  const { code, out, err } = await cli('accounts', 'open', name);
  expect({ code, err }).toEqual({ code: 0, err: '' });
  return out.trimEnd();
}

describe('beside a running server', () => {
  test('neither an account nor a key gets a name that nobody could read, or that a terminal would obey', async () => {
    const before = (await cli('accounts', 'list')).out;
    for (const command of [
      ['accounts', 'open', 'a\u001b[2Jb'],
      ['keys', 'issue', '--name', 'x'.repeat(100_000)],
    ]) {
      const { code, out, err } = await cli(...command);
      expect([code, out]).toEqual([1, '']);
      expect(err).toMatch(/^The name must [^\n]+\.\n$/);
    }
    expect((await cli('accounts', 'list')).out).toBe(before);
  });

  test('an account is opened and listed, its key is issued, listed and revoked, and the server obeys each', async () => {
    const account = await openAccount('Second account');
    expect(account).toMatch(/^acct_[0-7][0-9a-hjkmnp-tv-z]{25}$/);
    const accounts = await cli('accounts', 'list');
    expect(lines(accounts.out).map((line) => line.split(/ {2,}/).at(-1))).toEqual([
      'NAME',
      'default',
      'Second account',
    ]);
    expect(lines(accounts.out)[2]).toMatch(
      new RegExp(
        `^${account}  \\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z  -       -          -     Second account$`,
      ),
    );

    const issued = await cli(
      'keys',
      'issue',
      '--account',
      account,
      '--name',
      'for tests',
      '--scopes',
      'agents:read,sessions:read',
      '--expires-in',
      '2h',
    );
    expect(issued).toMatchObject({ code: 0, err: '' });
    const [, key_id] = KEY.exec(issued.out)!;
    const api_key = issued.out.trimEnd();
    const client = await clientWith(service.url, { account_id: account, key_id: key_id!, api_key });
    expect((await client.get('/v1/agents')).body.data).toEqual([]);
    expectFailure(await client.post('/v1/agents', {}), 'forbidden');

    const listed = await cli('keys', 'list', '--account', account);
    expect(lines(listed.out)).toEqual([
      expect.stringMatching(/^KEY +ISSUED +STATE +SCOPES +NAME$/),
      expect.stringMatching(
        new RegExp(
          `^${key_id}  [\\d-]{10}T[\\d:.]+Z  expires [\\d-]{10}T[\\d:.]+Z  agents:read,sessions:read  for tests$`,
        ),
      ),
    ]);
    const [issuedAt, expiresAt] = listed.out
      .match(/\d{4}-\S+Z/g)!
      .map((text) => Date.parse(text)) as [number, number];
    expect(expiresAt - issuedAt).toBeGreaterThan(2 * 3_600_000 - 5_000);
    expect(expiresAt - issuedAt).toBeLessThanOrEqual(2 * 3_600_000);
    expect(listed.out).not.toContain(api_key.slice(-64));
    const inJson = (await cli('keys', 'list', '--account', account, '--json')).out;
    expect(JSON.parse(inJson)).toMatchObject([{ key_id }]);
    expect(inJson).not.toMatch(/hash/);

    const revoked = await cli('keys', 'revoke', key_id!);
    const answeredAt = performance.now();
    expect(revoked).toEqual({ code: 0, out: `${key_id} is revoked\n`, err: '' });
    // What counts is when a request was sent: its answer may take its time on a busy machine.
    const ask = async () => ({
      sentAfter: performance.now() - answeredAt,
      reply: await client.get('/v1/agents'),
    });
    const { reply } = await eventually(
      ask,
      ({ sentAfter, reply: { status } }) => status !== 200 || sentAfter > 1_000,
    );
    expectFailure(reply, 'unauthorized');
    expect((await cli('keys', 'revoke', key_id!)).out).toBe(`${key_id} was revoked already\n`);
    expect((await cli('keys', 'list', '--account', account)).out).toMatch(/ revoked \d{4}-/);
    expect((await service.get('/v1/models')).status).toBe(200);
  });

  test('a key without options holds every scope of its account and never expires, where there is only one account', async () => {
    const folder = await temporaryFolder();
    try {
      const none = await runCli(folder, 'keys', 'issue');
      expect(none.err).toMatch(/^There is no event log in /);
      await runCli(folder, 'accounts', 'open', 'only');
      expect((await runCli(folder, 'keys', 'issue')).out).toMatch(KEY);
      expect((await runCli(folder, 'keys', 'list')).out).toMatch(
        new RegExp(`  valid  ${ACCOUNT_SCOPES.join(',')}  unnamed\\n$`),
      );
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

describe('a mistake', () => {
  test.each([
    ['an unknown account', 1, ['keys', 'issue', '--account', 'acct_unknown'], /account/],
    ['an unknown key', 1, ['keys', 'revoke', 'key_unknown'], /There is no key key_unknown\./],
    [
      'an unknown scope',
      2,
      ['keys', 'issue', '--scopes', 'agents:read,everything'],
      new RegExp(`Scopes are ${SCOPES.join(', ')}\\.`),
    ],
    ['an odd duration', 2, ['keys', 'issue', '--expires-in', 'soon'], /15m, 12h, 30d/],
    ['no name', 2, ['accounts', 'open'], /missing required argument 'name'/],
  ])(
    'is one clear message and an exit code, and changes nothing: %s',
    async (_what, exit, args, message) => {
      const { code, out, err } = await cli(...args);
      expect({ code, out }).toEqual({ code: exit, out: '' });
      expect(err).toMatch(message);
      expect(err).not.toMatch(/\n\s+at /);
    },
  );

  test('is a key without --account where there are several', async () => {
    await openAccount('One more');
    expect(await cli('keys', 'issue')).toEqual({
      code: 1,
      out: '',
      err: 'There are several accounts: name one with --account (`accounts list` lists them).\n',
    });
    expect((await apiClient(service.url, service.key).get('/v1/models')).status).toBe(200);
  });
});
