/** The real build of the console: what a fresh clone, a killed service and an image do. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { basename, join, sep } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { root, textOf } from '../../support/docs/projectFiles.ts';
import { eventually } from '../../support/processes/operator.ts';
import { plainEnvironment } from '../../support/processes/plainEnvironment.ts';
import { orSkip } from '../../support/processes/recipes/installed.ts';
import { startServerProcess, type ServerProcess } from '../../support/processes/serverProcess.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

const TIMEOUT_MS = 300_000;
const BUILDING = 'the console is being built';
const run = promisify(execFile);
const registry = await orSkip(
  () => run('npm', ['view', 'vite', 'name'], { timeout: 30_000 }),
  'The console is built with packages of the npm registry.',
);
const withRegistry = registry ? test : test.skip;

/** Without what installing and building add. */
const isSource = (path: string): boolean =>
  !['node_modules', 'dist', '.build'].includes(basename(path));
const copy = (to: string, path: string): Promise<void> =>
  cp(join(root, path), join(to, path), { recursive: true, filter: isSource });

let clone: string;
let server: ServerProcess | undefined;
beforeAll(async () => {
  clone = await temporaryFolder();
  for (const path of ['package.json', 'package-lock.json', 'services', 'shared', 'infra'])
    await copy(clone, path);
  await symlink(join(root, 'node_modules'), join(clone, 'node_modules'));
}, TIMEOUT_MS);
afterAll(async () => {
  server?.kill('SIGKILL');
  await server?.exited;
  await rm(clone, { recursive: true });
}, TIMEOUT_MS);

async function start(): Promise<string> {
  server = startServerProcess({ CONSOLE: 'on', DATA_DIR: join(clone, 'data') }, [], clone);
  return server.ready;
}

async function stop(signal: NodeJS.Signals): Promise<void> {
  server!.kill(signal);
  await server!.exited;
}

const pageOf = async (url: string): Promise<string> =>
  (await fetch(`${url}/console/agents`)).text();
const untilShown = (url: string, text: string): Promise<string> =>
  eventually(
    () => pageOf(url),
    (page) => page.includes(text),
  );

/** The processes that work in the workspace. */
async function workers(): Promise<string[]> {
  const { stdout } = await run('ps', ['-eo', 'pid=,args=']);
  return stdout.split('\n').filter((line) => line.includes(`${clone}${sep}`));
}

withRegistry(
  'a fresh clone serves the API first, and the console once it is built, also when the first service was killed meanwhile',
  async () => {
    let url = await start();
    const log = await eventually(
      async () => server!.errors(),
      (text) => text.includes(BUILDING),
    );
    // The build installs what it needs.
    expect(log.slice(0, log.indexOf(BUILDING))).toContain('the service is up');
    expect((await fetch(`${url}/health/ready`)).status).toBe(200);
    await untilShown(url, 'Installing dependencies (npm ci --omit=dev)');
    expect(await pageOf(url)).toContain('The console is being built');
    await stop('SIGKILL');
    await eventually(workers, (left) => left.length === 0);

    url = await start();
    const page = await untilShown(url, '<div id="root">');
    expect(server!.errors()).toContain('the console was built');
    const [script] = /\/console\/assets\/[^"]+\.js/.exec(page)!;
    const served = await fetch(url + script, { headers: { 'accept-encoding': 'br' } });
    expect([served.status, served.headers.get('content-encoding')]).toEqual([200, 'br']);
    // No request to any other host.
    expect(page).not.toMatch(/(?:src|href)="(?!\/console\/)/);
    await stop('SIGTERM');

    url = await start();
    expect(await pageOf(url)).toBe(page);
    await stop('SIGTERM');
    expect(server!.errors()).not.toContain(BUILDING);
  },
  TIMEOUT_MS,
);

withRegistry(
  'a console whose sources are broken says so, and the service stays healthy; once they are repaired, it is built',
  async () => {
    const main = join(clone, 'services/console/src/main.tsx');
    const source = await readFile(main, 'utf8');
    await writeFile(main, `import './missing.tsx';\n${source}`);
    let url = await start();
    const failed = await untilShown(url, 'The console could not be built');
    expect(failed).toContain('missing.tsx');
    expect((await fetch(`${url}/health/ready`)).status).toBe(200);
    await stop('SIGTERM');

    await writeFile(main, source);
    url = await start();
    await untilShown(url, '<div id="root">');
    await stop('SIGTERM');
  },
  TIMEOUT_MS,
);

withRegistry(
  'the image builds the console from what its stage copies',
  async () => {
    const [, stage] = /^FROM \S+ AS console\n([^]*?)^FROM /m.exec(
      textOf('infra/deploy/Dockerfile'),
    )!;
    const folder = await temporaryFolder();
    try {
      for (const [, path] of stage!.matchAll(/^COPY (\S+) /gm)) await copy(folder, path!);
      const [, program] = /&& node (\S+)$/m.exec(stage!)!;
      await run(process.execPath, [program!], { cwd: folder, env: plainEnvironment() });
      expect(existsSync(join(folder, 'services/console/dist/index.html'))).toBe(true);
    } finally {
      await rm(folder, { recursive: true });
    }
  },
  TIMEOUT_MS,
);
