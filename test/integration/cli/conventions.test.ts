/** What holds for every operator command: JSON, exit codes, help, and stores that are not there. */
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { handle } from '../../../shared/commandHandling/handle.ts';
import { wholeStreamTarget } from '../../../shared/commandHandling/targetStream.ts';
import { account } from '../../../shared/accounts/decider.ts';
import { accountStream } from '../../../shared/eventlog/streams.ts';
import { runCli, startCliProcess, startCliWith } from '../../support/processes/cliProcess.ts';
import { freePort } from '../../support/processes/freePort.ts';
import { asOperator } from '../../support/processes/operator.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

const NASTY = 'a\u001b[2Jb\nc\u202ed';

let elsewhere: string;
let data: string;
beforeAll(async () => {
  elsewhere = await temporaryFolder();
  data = join(elsewhere, 'data');
  // As releases wrote it that took any name.
  await asOperator(data, (operator) => {
    const account_id = operator.ids.typeId('acct');
    const actor = { account_id, key_id: 'operator', request_id: 'test' };
    const target = wholeStreamTarget(accountStream(account_id), account);
    return handle(operator, actor, target, { type: 'open_account', name: NASTY });
  });
}, 30_000);
afterAll(() => rm(elsewhere, { recursive: true }));

const json = (text: string): unknown => {
  expect(text.endsWith('\n')).toBe(true);
  return JSON.parse(text);
};

describe('a store that is not there', () => {
  const nothing = (): string => join(elsewhere, 'typo');

  test.each([
    ['accounts', 'list'],
    ['accounts', 'erase', 'acct_1', '--confirm', 'acct_1'],
    ['keys', 'list'],
    ['keys', 'issue'],
    ['keys', 'revoke', 'key_1'],
    ['text-keys', 'status'],
    ['text-keys', 'rotate'],
    ['text-keys', 'reconcile'],
    ['log', 'show'],
    ['log', 'accept-restored', '--reason', 'test'],
    ['projections', 'rebuild'],
    ['relay', 'replay', '--topic', 'test'],
    ['audit', 'verify'],
    ['audit', 'heads', '--out', 'HEADS'],
    ['backup', 'HEADS'],
    ['events', 'tail', '--no-follow'],
  ])('is an error, and nothing is made: %s %s', async (...args) => {
    const words = args.map((word) => (word === 'HEADS' ? join(elsewhere, 'heads') : word));
    const { code, out, err } = await runCli(nothing(), ...words);
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toMatch(/^There is no event log in \S+typo\. Set DATA_DIR [^\n]*\n$/);
    expect(existsSync(nothing())).toBe(false);
  });

  test('is an error of a copy too, which makes no target', async () => {
    const [from, to] = [nothing(), join(elsewhere, 'target')];
    const { code, out, err } = await runCli(data, 'events', 'copy', '--from', from, '--to', to);
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toMatch(/^There is no event log in \S+typo\. Nothing was copied/);
    expect([existsSync(from), existsSync(to)]).toEqual([false, false]);
  });

  test('is made by the opening of an account, and by a copy', async () => {
    const [first, second] = [join(elsewhere, 'first'), join(elsewhere, 'second')];
    expect((await runCli(first, 'accounts', 'open', 'x')).code).toBe(0);
    expect((await runCli(first, 'events', 'copy', '--from', first, '--to', second)).code).toBe(0);
    expect((await runCli(second, 'audit', 'verify')).code).toBe(0);
  }, 30_000);
});

describe('positions that an operator names', () => {
  test.each(['999999', '18446744073709551616', '0000000000000099', 'a\u001b[2J'])(
    'are refused before anything is done where the log does not have them: %j',
    async (after) => {
      const target = join(elsewhere, 'refused');
      const copy = ['events', 'copy', '--from', data, '--to', target, '--after', after];
      const { code, out, err } = await runCli(data, ...copy);
      expect({ code, out }).toEqual({ code: 2, out: '' });
      expect(err).toMatch(/which ends at 0000000000000001: /);
      expect(err).not.toContain('\u001b');
      expect(existsSync(target)).toBe(false);
    },
  );

  test('are refused by a replay before it speaks to Kafka', async () => {
    const KAFKA_BROKERS = `127.0.0.1:${await freePort()}`;
    const replay = ['relay', 'replay', '--topic', 'test', '--from', 'zzz'];
    const { code, err } = await startCliWith({ DATA_DIR: data, KAFKA_BROKERS }, ...replay).ended;
    expect(code).toBe(2);
    expect(err).toMatch(/^zzz is not a position of this log, [^\n]*\n$/);
  });
});

describe('--json', () => {
  test.each([
    [['accounts', 'list'], [expect.objectContaining({ name: NASTY })]],
    [['keys', 'issue'], { account_id: expect.any(String), api_key: expect.any(String) }],
    [['keys', 'list'], [expect.objectContaining({ name: 'unnamed', revoked_at: null })]],
    [['log', 'show'], { ends_at: '0000000000000002', declarations: [] }],
    [['audit', 'verify'], { complete: true, events: 2, misfit: null, heads: null }],
    [['audit', 'heads', '--out', 'HEADS'], { streams: 1, sha256: expect.any(String) }],
    [['audit', 'verify', '--heads', 'HEADS'], { heads: { compared: 1, complete: true } }],
    [['projections', 'rebuild'], { complete: true, events: 2, parked_streams: 0 }],
    [['events', 'copy', '--from', 'DATA', '--to', 'COPY'], { complete: true, events: 2 }],
    [['--version'], { turnlog: expect.any(String), read_models: expect.any(Number) }],
  ])('answers %j with one document, and nothing else', async (args, expected) => {
    const places = new Map([
      ['HEADS', join(elsewhere, 'heads.jsonl')],
      ['DATA', data],
      ['COPY', join(elsewhere, 'copy')],
    ]);
    const words = args.map((word) => places.get(word) ?? word);
    const { code, out, err } = await runCli(data, '--json', ...words);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(json(out)).toMatchObject(expected);
    expect(out).not.toContain('\u202e');
  });

  test.each([
    [['keys', 'revoke', 'key_unknown'], 1, 'configuration_invalid'],
    [['audit', 'verify', '--after', 'zzz'], 2, 'position_invalid'],
    [['accounts', 'open'], 2, 'usage'],
    [['bogus'], 2, 'usage'],
    [[], 2, 'usage'],
    [['events', 'copy', '--from', 'esdb://a:hidden@b', '--to', 'x'], 2, 'usage'],
    [['events', 'copy', 'esdb://a:hidden@b'], 2, 'usage'],
  ])('tells of a failure with one object on standard error: %j', async (args, exit, error) => {
    const { code, out, err } = await runCli(data, ...args, '--json');
    expect({ code, out }).toEqual({ code: exit, out: '' });
    expect(json(err)).toEqual({ error: { code: error, message: expect.stringMatching(/./) } });
    expect(err).not.toContain('hidden');
  });
});

test.each([
  [0, ['accounts', 'list', '--json']],
  [1, ['keys', 'revoke', 'key_unknown', '--json']],
  [2, ['accounts', 'open', '--json']],
])('the process of a command ends with its exit code: %i', async (exit, args) => {
  const { code, out, err } = await startCliProcess({ DATA_DIR: data }, ...args).ended;
  expect({ code, out: out !== '', err: err !== '' }).toEqual({
    code: exit,
    out: exit === 0,
    err: exit !== 0,
  });
  json(exit === 0 ? out : err);
});

describe('for people', () => {
  test('lists have headers, and names can do nothing to the terminal', async () => {
    const { out } = await runCli(data, 'accounts', 'list');
    const [header, row, end] = out.split('\n');
    expect(header).toMatch(/^ACCOUNT +OPENED +LIMITS +RETENTION +HOLD +NAME$/);
    expect(row!.indexOf('a\\u001b[2Jb\\u000ac\\u202ed')).toBe(header!.indexOf('NAME'));
    expect(end).toBe('');
  });

  test('every help says how commands end, and nothing is an error', async () => {
    const helps = [['--help'], ['keys', 'issue', '--help'], ['events', 'tail', '--help']];
    for (const args of helps) {
      const { code, out, err } = await runCli(data, ...args);
      expect({ code, err }).toEqual({ code: 0, err: '' });
      expect(out).toMatch(/\nExit codes:\n +0 .*\n +1 .*\n +2 .*\n +3 .*\n +70 .*\n +130 /);
      expect(out).toContain('--json');
    }
    expect((await runCli(data, '--version')).out).toMatch(
      /^turnlog \d+\.\d+\.\d+, read models \d+/,
    );
  });

  test('a variable that looks like an option is told of, and the command goes on', async () => {
    const env = { DATA_DIR: data, KAFKA_BROKER: 'x' };
    const { code, err } = await startCliWith(env, 'log', 'show').ended;
    expect(code).toBe(0);
    expect(err).toContain(
      'KAFKA_BROKER is not an option, and is ignored; did you mean KAFKA_BROKERS?',
    );
  });
});
