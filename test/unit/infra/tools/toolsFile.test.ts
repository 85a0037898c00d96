import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { readToolsFile } from '../../../../infra/tools/toolsFile.ts';

let folder: string;
beforeAll(async () => (folder = await mkdtemp(join(tmpdir(), 'tools-'))));
afterAll(() => rm(folder, { recursive: true }));

async function read(content: unknown, env: Record<string, string> = {}) {
  const file = join(folder, 'tools.json');
  await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content));
  return readToolsFile(file, env);
}

test('takes servers over both transports', async () => {
  const content = {
    builtin: ['clock'],
    web_fetch: { allow_private: true },
    mcp_servers: {
      files: {
        command: 'npx',
        args: ['-y', 'x'],
        env: { A: 'b' },
        env_from: { TOKEN: 'MINE' },
        cwd: '/srv',
      },
      search: {
        url: 'https://mcp.example/mcp',
        headers_from: { authorization: 'MINE' },
        tools: ['find'],
        call_timeout_ms: 5,
      },
    },
  };
  expect(await read(content, { MINE: 'secret' })).toEqual(content);
});

test('tells of all problems at once, each with its place, and of no value', async () => {
  const reading = read({
    builtin: ['clock', 'telephone'],
    extra: 1,
    mcp_servers: {
      Files: { command: 'x' },
      both: { command: 'x', url: 'http://a/' },
      neither: {},
      odd: { command: '', args: 'x', headers: {} },
      credentials: { url: 'https://name:password@a/' },
      unset: { url: 'https://a/', headers_from: { authorization: 'NOT_SET' } },
    },
  });
  const error = (await reading.catch((thrown: unknown) => thrown)) as Error & { details: object };
  expect(error).toMatchObject({ code: 'configuration_invalid' });
  expect(error.message).not.toContain('password@');
  const places = Object.keys(error.details).map((place) => place.split('#')[1]);
  expect(new Set(places)).toEqual(
    new Set([
      '/builtin/1',
      '/extra',
      '/mcp_servers/Files',
      '/mcp_servers/both',
      '/mcp_servers/credentials/url',
      '/mcp_servers/neither',
      '/mcp_servers/odd/args',
      '/mcp_servers/odd/command',
      '/mcp_servers/odd/headers',
      '/mcp_servers/unset/headers_from/authorization',
    ]),
  );
});

test.each(['{', '[]', '"x"'])('refuses a file that is %s', async (content) => {
  await expect(read(content)).rejects.toMatchObject({ code: 'configuration_invalid' });
});

test('refuses a file that is not there', async () => {
  await expect(readToolsFile(join(folder, 'none.json'), {})).rejects.toThrow('ENOENT');
});
