import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, test } from '@jest/globals';
import { formatBanner } from '../../../../services/process/banner.ts';
import type { RunningService } from '../../../../services/process/start.ts';

const service = (firstKey: string | undefined): RunningService => ({
  url: 'http://127.0.0.1:3000',
  services: ['api', 'projector'],
  dataFolder: '/var/lib/turnlog',
  firstKey,
  models: ['offline-echo', 'other'],
  consoleLink: undefined,
  stop: () => Promise.resolve(),
});
const KEY = `tl_key_01kahz0b2re5v8k2s4n6t8w0y2_${'0'.repeat(64)}`;

const now = new Date('2026-11-26T17:28:35.803Z');
const onTerminal = { isOperatorsKey: false, isTerminal: true, now };

describe('the banner', () => {
  test('tells the address, the data folder and the key that was just made', () => {
    const lines = formatBanner(service(KEY), onTerminal).split('\n');
    expect(lines).toContain('Turnlog listens on http://127.0.0.1:3000');
    expect(lines).toContain('Data folder: /var/lib/turnlog');
    expect(lines.find((line) => line.startsWith('API key'))).toContain(KEY);
  });

  test.each([
    ['chose the first key', KEY, true, 'the value of BOOTSTRAP_API_KEY'],
    ['has a key from an earlier start', undefined, false, 'keys issue'],
  ])('tells an operator who %s where it is', (_what, key, isOperatorsKey, where) => {
    const shown = formatBanner(service(key), { ...onTerminal, isOperatorsKey });
    expect(shown).not.toContain(KEY);
    expect(shown).toContain('$TURNLOG_API_KEY');
    expect(shown.split('\n').find((line) => line.startsWith('API key'))).toContain(where);
  });

  test('has the link of the console last on a terminal, and as a member of the JSON', () => {
    const consoleLink = 'http://127.0.0.1:3000/console/#code=abc';
    const linked = { ...service(KEY), consoleLink };
    expect(formatBanner(linked, onTerminal).trimEnd().split('\n').at(-1)).toBe(
      `Console, with a link that signs in once within 15 minutes: ${consoleLink}`,
    );
    expect(JSON.parse(formatBanner(linked, { ...onTerminal, isTerminal: false }))).toMatchObject({
      console: consoleLink,
    });
  });

  test('is one line of JSON where it goes to no terminal', () => {
    const inFile = { ...onTerminal, isTerminal: false };
    const [line, ...rest] = formatBanner(service(KEY), inFile).split('\n');
    expect(rest).toEqual(['']);
    expect(JSON.parse(line!)).toEqual({
      level: 'info',
      time: now.toISOString(),
      url: 'http://127.0.0.1:3000',
      services: ['api', 'projector'],
      data_folder: '/var/lib/turnlog',
      api_key: KEY,
      about_api_key: expect.stringContaining('shown this once'),
      try: expect.stringContaining(
        `curl -s 'http://127.0.0.1:3000/v1/agents?pretty=true' -H "x-api-key: ${KEY}"`,
      ),
      msg: 'Turnlog listens on http://127.0.0.1:3000',
    });
    const again = JSON.parse(
      formatBanner(service(KEY), { ...inFile, isOperatorsKey: true }),
    ) as object;
    expect(JSON.stringify(again)).not.toContain(KEY);
    expect(again).toMatchObject({ about_api_key: expect.stringContaining('BOOTSTRAP_API_KEY') });
  });

  test('of a process without the API tells its services and where its state is, and nothing to try', () => {
    expect(
      formatBanner(
        { ...service(undefined), services: ['projector', 'relay'], dataFolder: undefined },
        onTerminal,
      ).split('\n'),
    ).toEqual([
      'Turnlog listens on http://127.0.0.1:3000',
      'Services: projector, relay',
      'Its state: http://127.0.0.1:3000/health/ready',
      '',
    ]);
  });

  test('holds a curl line that creates an agent when a shell is given it as it is', async () => {
    const command = formatBanner(service(KEY), onTerminal)
      .split('\n')
      .find((line) => line.includes('curl'))!;
    const shell = `curl() { '${process.execPath}' -e 'console.log(JSON.stringify(process.argv.slice(1)))' -- "$@"; }\n${command}`;
    const { stdout } = await promisify(execFile)('sh', ['-c', shell], {
      env: { ...process.env, NODE_OPTIONS: '' },
    });
    const [silent, url, header, key, again, type, data, body] = JSON.parse(stdout) as string[];
    expect([silent, url, header, key, again, type, data]).toEqual([
      '-s',
      'http://127.0.0.1:3000/v1/agents?pretty=true',
      '-H',
      `x-api-key: ${KEY}`,
      '-H',
      'content-type: application/json',
      '-d',
    ]);
    expect(JSON.parse(body!)).toEqual({
      name: 'Echo',
      instruction: 'Answer briefly.',
      model: 'offline-echo',
    });
  });
});
