import { execFile } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import { plainEnvironment } from '../../support/processes/plainEnvironment.ts';
import { startServerProcess } from '../../support/processes/serverProcess.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';
import { TEST_KEY } from '../../support/http/service.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));

/** The blocks of a chapter that have a command, an empty line, and what it prints. */
async function examples(heading: string): Promise<{ command: string; printed: string }[]> {
  const page = await readFile(join(root, 'README.md'), 'utf8');
  const text = page.slice(page.indexOf(`## ${heading}`)).split(/^## /m)[1]!;
  const blocks = text.split(/^```\n/m).filter((_, index) => index % 2 === 1);
  return blocks.flatMap((block) => {
    const [command, printed] = block.split('\n\n');
    return printed === undefined ? [] : [{ command: command!, printed }];
  });
}

/** Ids, times and hashes differ from run to run; progress is not among the output. */
const shapeOf = (text: string): string =>
  text
    .replaceAll(/^\d+ events verified.*\n/gm, '')
    .trim()
    .replaceAll(
      /(?:[0-9a-f]{8}-[-0-9a-f]{27}|[0-9a-f]{64}|_[0-9a-z]{26}|\d{4}-\d\d-\d\dT[\d:.]+Z)/g,
      '#',
    );

test('the commands of README, pasted one after the other, print what it says', async () => {
  const folder = await temporaryFolder();
  const env = { DATA_DIR: join(folder, 'data'), BOOTSTRAP_API_KEY: TEST_KEY, LOG_LEVEL: 'warn' };
  const server = startServerProcess(env);
  try {
    const { port } = new URL(await server.ready);
    const all = await examples('First requests');
    const script = all
      .map(({ command }) => `${command.replaceAll('localhost:3000', `localhost:${port}`)}\necho @@`)
      .join('\n');
    const { stdout } = await promisify(execFile)('sh', ['-c', `{ ${script}\n} 2>&1 | cat`], {
      cwd: root,
      env: { ...plainEnvironment(), ...env, KEY: TEST_KEY },
    });
    expect(all.length).toBeGreaterThanOrEqual(4);
    expect(stdout.split('@@').slice(0, -1).map(shapeOf)).toEqual(
      all.map(({ printed }) => shapeOf(printed)),
    );
  } finally {
    server.kill('SIGTERM');
    await server.exited;
    await rm(folder, { recursive: true });
  }
});
