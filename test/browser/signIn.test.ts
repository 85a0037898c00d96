/** The link that a start prints, over the console as the service serves it. */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { startConsoleBrowser } from '../support/browser/console.ts';
import { startTestService } from '../support/http/service.ts';
import { eventually } from '../support/processes/operator.ts';
import { temporaryFolder } from '../support/stores/sqlite/sqliteEventStore.ts';

const console_ = await startConsoleBrowser('sign-in');
afterAll(() => console_?.close());
const withBrowser = console_ ? test : test.skip;

withBrowser(
  'the link signs in once, leaves no code in the address, and loads nothing from elsewhere',
  async () => {
    await using service = await startService();
    const context = await console_!.browser.newContext();
    const page = await context.newPage();
    const problems: string[] = [];
    page.on('pageerror', (error) => problems.push(String(error)));
    page.on('console', (message) => {
      if (message.type() === 'error') problems.push(`${message.text()} ${message.location().url}`);
    });
    const hosts = new Set<string>();
    page.on('request', (request) => hosts.add(new URL(request.url()).origin));
    const link = service.service().consoleLink!;
    await page.goto(link);
    await page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor();
    expect(page.url()).toBe(`${service.url}/console/agents`);
    expect([[...hosts], problems]).toEqual([[service.url], []]);

    const second = await (await console_!.browser.newContext()).newPage();
    await second.goto(link);
    await second.getByText('The code is wrong, expired or used').waitFor();
    expect(second.url()).not.toContain('code=');
  },
);

/** Waits for a file, and builds a page whose title is the fragment of its address. */
const VITE = `
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
const out = process.argv[process.argv.indexOf('--outDir') + 1];
const build = () => {
  if (!existsSync('go.md')) return void setTimeout(build, 10);
  mkdirSync(out + '/assets', { recursive: true });
  writeFileSync(out + '/index.html', '<!doctype html><script src="/console/assets/a.js"></script>');
  writeFileSync(out + '/assets/a.js', 'document.title = location.hash');
};
build();
`;

withBrowser(
  'a link that is opened during the build works when the page has reloaded by itself',
  async () => {
    const sources = await temporaryFolder();
    const lock = JSON.stringify({ lockfileVersion: 3, packages: {} });
    const files = {
      'package.json': '{ "type": "module" }',
      'package-lock.json': lock,
      'node_modules/.package-lock.json': lock,
      'node_modules/vite/bin/vite.js': VITE,
      'vite.config.ts': '',
    };
    for (const [name, text] of Object.entries(files)) {
      await mkdir(dirname(join(sources, name)), { recursive: true });
      await writeFile(join(sources, name), text);
    }
    try {
      await using service = await startService(sources);
      const page = await console_!.browser.newPage();
      const link = service.service().consoleLink!;
      await page.goto(link);
      await page.getByRole('heading', { name: 'The console is being built' }).waitFor();
      await page.getByText('Building the console…').waitFor();
      await writeFile(join(sources, 'go.md'), '');
      await eventually(
        () => page.title(),
        (title) => title === new URL(link).hash,
      );
    } finally {
      await rm(sources, { recursive: true });
    }
  },
);

async function startService(sources?: string) {
  const service = await startTestService({ text: 'Hi.' }, { CONSOLE: 'on' }, sources);
  return Object.assign(service, { [Symbol.asyncDispose]: () => service.close() });
}
