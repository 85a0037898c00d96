import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from '@jest/globals';
import { createLogger } from '../../../../shared/lib/logger.ts';

const loggerFile = fileURLToPath(new URL('../../../../shared/lib/logger.ts', import.meta.url));

/** What a process writes that logs so, line by line; standard output must stay empty. */
async function logged(level: string, script: string): Promise<Record<string, unknown>[]> {
  const source = `const { createLogger } = await import(${JSON.stringify(loggerFile)}); const logger = createLogger(${JSON.stringify(level)}); ${script}`;
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '-e', source],
    { env: { ...process.env, NODE_OPTIONS: '' } },
  );
  expect(stdout).toBe('');
  return stderr
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

describe('the logger', () => {
  test('writes a line of JSON with level, time and message to standard error, from its level on', async () => {
    const lines = await logged(
      'warn',
      "logger.info('not this'); logger.warn({ turn: 1 }, 'this'); logger.error({ err: new Error('why', { cause: new Error('deeper') }) }, 'that');",
    );
    expect(lines).toEqual([
      {
        level: 'warn',
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/),
        turn: 1,
        msg: 'this',
      },
      {
        level: 'error',
        time: expect.any(String),
        err: expect.objectContaining({ message: 'why: deeper', stack: expect.any(String) }),
        msg: 'that',
      },
    ]);
  });

  test('keeps its last line when the process ends right after it', async () => {
    expect(await logged('info', "logger.fatal('the end'); process.exit(0);")).toEqual([
      expect.objectContaining({ level: 'fatal', msg: 'the end' }),
    ]);
  });

  test('shows no secret, at the top or one level down', async () => {
    const secrets = [
      'api_key',
      'apiKey',
      'authorization',
      'secret',
      'password',
      'token',
      'x-api-key',
    ];
    const fields = Object.fromEntries(secrets.map((name) => [name, 'hidden-value']));
    const lines = JSON.stringify(
      await logged(
        'info',
        `logger.info(${JSON.stringify({ ...fields, headers: fields })}, 'with secrets');`,
      ),
    );
    expect(lines).not.toContain('hidden-value');
    expect(lines.match(/\[Redacted\]/g)?.length).toBe(2 * secrets.length);
  });

  test('is quiet at the level silent', async () => {
    expect(await logged('silent', "logger.fatal('nothing')")).toEqual([]);
  });

  test.each([
    [true, /^\d\d:\d\d:\d\d WARN {2}this turn=1\n$/],
    [false, /^{"level":"warn",.*"turn":1,"msg":"this"}\n$/],
  ])('on a terminal (%s) writes text for people', (isTTY, expected) => {
    let text = '';
    const write = (line: string): void => void (text += line);
    createLogger('info', { isTTY, write }).warn({ turn: 1 }, 'this');
    expect(text).toMatch(expected);
  });
});
