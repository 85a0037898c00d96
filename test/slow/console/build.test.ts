/** The build in the background, over a small workspace whose Vite is a script of a few lines. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createConsoleBuild } from '../../../infra/vite/consoleBuild.ts';
import { createLogger } from '../../../shared/lib/logger.ts';
import { eventually } from '../../support/processes/operator.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

const BUILD = fileURLToPath(new URL('../../../infra/vite/build.ts', import.meta.url));
const CONSOLE_BUILD = fileURLToPath(
  new URL('../../../infra/vite/consoleBuild.ts', import.meta.url),
);

/**
 * Says which variables it sees, that it was called, by which process, and what it builds. Then it
 * waits until a file says `go`, and ends with the exit code in that file.
 */
const VITE = `
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { getPriority } from 'node:os';
const out = process.argv[process.argv.indexOf('--outDir') + 1];
appendFileSync('calls.md', JSON.stringify({ pid: process.pid, priority: getPriority(), env: process.env }) + '\\n');
console.log('\\x1b[32mtransforming 12 modules\\x1b[0m');
mkdirSync(join(out, 'assets'), { recursive: true });
const build = () => {
  if (!existsSync('go.md')) return void setTimeout(build, 10);
  const code = Number(readFileSync('go.md', 'utf8'));
  if (code !== 0) {
    console.error('Could not resolve ./missing.ts');
    process.exit(code);
  }
  writeFileSync(join(out, 'index.html'), readFileSync('src/main.ts'));
  writeFileSync(join(out, 'assets/a.js'), 'x'.repeat(5000));
};
build();
`;

let sources: string;
let lines: { level: string; msg: string; reason?: string }[];
type Build = ReturnType<typeof createConsoleBuild>;
const builds: Build[] = [];
const file = (name: string): string => join(sources, name);

async function write(name: string, text: string): Promise<void> {
  await mkdir(dirname(file(name)), { recursive: true });
  await writeFile(file(name), text);
}

interface Call {
  pid: number;
  priority: number;
  env: Record<string, string>;
}
const calls = async (): Promise<Call[]> =>
  existsSync(file('calls.md'))
    ? (await readFile(file('calls.md'), 'utf8'))
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Call)
    : [];

beforeEach(async () => {
  sources = await temporaryFolder();
  lines = [];
  const lock = JSON.stringify({ lockfileVersion: 3, packages: {} });
  await write('package.json', '{ "type": "module" }');
  await write('package-lock.json', lock);
  await write('node_modules/.package-lock.json', lock);
  await write('node_modules/vite/bin/vite.js', VITE);
  await write('vite.config.ts', '');
  await write('src/main.ts', 'first');
});
afterEach(async () => {
  for (const build of builds.splice(0)) await build[Symbol.asyncDispose]();
  await rm(sources, { recursive: true });
});

function createBuild(limits: { buildMs?: number; retryMs?: number } = {}): Build {
  const output = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const build = createConsoleBuild({ logger: createLogger('info', output), sources, ...limits });
  builds.push(build);
  return build;
}

const until = (build: Build, kind: 'ready' | 'failed') =>
  eventually(
    () => build.visit(),
    (state) => state.kind === kind,
  );

/** Starts a build, and resolves when its Vite runs for the `nth` time. */
async function startBuild(build: Build, nth = 1): Promise<Call> {
  build.start();
  return (await eventually(calls, (made) => made.length >= nth)).at(-1)!;
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

test('a console that was never built is built, with its progress, and compressed', async () => {
  const build = createBuild();
  expect(await build.visit()).toMatchObject({
    kind: 'building',
    output: 'The service is starting.',
  });
  process.env['OPENAI_API_KEY'] = 'secret';
  const { priority, env } = await startBuild(build).finally(
    () => delete process.env['OPENAI_API_KEY'],
  );
  expect(priority).toBeGreaterThan(0);
  expect(Object.values(env)).not.toContain('secret');
  expect(env).toMatchObject({ PATH: process.env['PATH'], NODE_ENV: 'production' });
  await eventually(
    () => build.visit(),
    (state) => state.kind === 'building' && state.output === 'transforming 12 modules',
  );
  expect(existsSync(build.folder)).toBe(false);
  await write('go.md', '0');
  await until(build, 'ready');
  expect(await readFile(join(build.folder, 'index.html'), 'utf8')).toBe('first');
  const asset = await readFile(join(build.folder, 'assets/a.js.gz'));
  expect(gunzipSync(asset).toString()).toBe('x'.repeat(5_000));
  expect(existsSync(join(build.folder, 'assets/a.js.br'))).toBe(true);
  expect(existsSync(join(build.folder, 'index.html.br'))).toBe(false);
  expect(lines.map(({ level, msg }) => `${level}: ${msg}`)).toEqual([
    'info: the console is being built in the background',
    'info: the console was built',
  ]);
});

test('a console is built again when its sources or its lockfile change, and otherwise not', async () => {
  await write('go.md', '0');
  const first = createBuild();
  await startBuild(first);
  await until(first, 'ready');

  const second = createBuild();
  expect(await second.visit()).toEqual({ kind: 'ready' });
  second.start();
  await write('README.md', 'Documentation is no source.');
  await until(createBuild(), 'ready');
  expect(await calls()).toHaveLength(1);

  await write('src/main.ts', 'second');
  const third = createBuild();
  expect(await third.visit()).toMatchObject({ kind: 'building' });
  await startBuild(third, 2);
  await until(third, 'ready');
  expect(await readFile(join(third.folder, 'index.html'), 'utf8')).toBe('second');

  const lock = JSON.stringify({ lockfileVersion: 3, packages: {}, name: 'other' });
  await write('package-lock.json', lock);
  expect(await createBuild().visit()).toMatchObject({ kind: 'building' });
});

test('built files without their sources are served as they are', async () => {
  await write('dist/index.html', 'packaged');
  expect(await createBuild().visit()).toMatchObject({ kind: 'building' });
  await rm(file('package.json'));
  expect(await createBuild().visit()).toEqual({ kind: 'ready' });
});

test('a build that fails says why and what to try in one line, and is begun again by a later visit', async () => {
  await write('go.md', '3');
  const build = createBuild({ retryMs: 1_000 });
  await startBuild(build);
  const failed = await until(build, 'failed');
  const reason = expect.stringMatching(
    /^Vite could not build the console\. Check [^]*\n\n[^]*Could not resolve/,
  );
  expect(failed).toMatchObject({ reason });
  expect(lines.filter(({ level }) => level === 'warn')).toMatchObject([{ reason }]);
  expect(existsSync(build.folder)).toBe(false);
  expect(existsSync(file('.build/output'))).toBe(false);

  await write('go.md', '0');
  expect(await build.visit()).toMatchObject({ kind: 'failed' });
  await until(build, 'ready');
  expect(await calls()).toHaveLength(2);
});

test('packages that can not be installed are named as the cause', async () => {
  const packages = { 'node_modules/none': { version: '1.0.0' } };
  await write('package-lock.json', JSON.stringify({ lockfileVersion: 3, packages }));
  const npm =
    "console.error('npm error code ENOTFOUND', process.argv.slice(2).join(' ')); process.exit(1);";
  await write('node_modules/npm.mjs', npm);
  const { npm_execpath: before } = process.env;
  process.env['npm_execpath'] = file('node_modules/npm.mjs');
  const build = createBuild();
  build.start();
  const failed = await until(build, 'failed');
  if (before === undefined) delete process.env['npm_execpath'];
  else process.env['npm_execpath'] = before;
  expect(failed).toMatchObject({
    reason: expect.stringMatching(
      /^The packages of the console could not be installed\. Check [^]*npm error code ENOTFOUND ci --omit=dev --ignore-scripts/,
    ),
  });
});

test('a folder that can not be written is named as the cause, and the image as the place to build', async () => {
  await write('.build', 'a file in the place of a folder');
  const build = createBuild();
  build.start();
  expect(await until(build, 'failed')).toMatchObject({
    reason: expect.stringMatching(
      /^The console could not be built in [^]*npm run console:build[^]*\n\nE/,
    ),
  });
});

test('a build that takes too long is ended with all that it started', async () => {
  const build = createBuild({ buildMs: 10_000 });
  const { pid } = await startBuild(build);
  expect(await until(build, 'failed')).toMatchObject({
    reason: expect.stringContaining('The build took longer than'),
  });
  await eventually(
    async () => isAlive(pid),
    (alive) => !alive,
  );
});

test('a service that stops ends the build with all that it started, and the next one builds', async () => {
  const build = createBuild();
  const { pid } = await startBuild(build);
  await build[Symbol.asyncDispose]();
  await eventually(
    async () => isAlive(pid),
    (alive) => !alive,
  );
  expect(lines.map(({ level }) => level)).toEqual(['info']);

  await write('go.md', '0');
  const next = createBuild();
  await startBuild(next, 2);
  await until(next, 'ready');
});

test('a service that is killed takes the build with it', async () => {
  const program = `
    import { createConsoleBuild } from ${JSON.stringify(CONSOLE_BUILD)};
    createConsoleBuild({ logger: { info() {}, warn() {} }, sources: process.argv[1] }).start();
    setInterval(() => {}, 60_000);`;
  const service = spawn(process.execPath, ['--input-type=module', '-e', program, sources], {
    env: { ...process.env, NODE_OPTIONS: '' },
    stdio: 'ignore',
  });
  const [{ pid }] = (await eventually(calls, (made) => made.length > 0)) as [Call];
  service.kill('SIGKILL');
  await eventually(
    async () => isAlive(pid),
    (alive) => !alive,
  );
});

test('a build that can no longer write to its service ends with all that it started', async () => {
  await write(
    'node_modules/vite/bin/vite.js',
    `import { appendFileSync, existsSync } from 'node:fs';
    appendFileSync('calls.md', JSON.stringify({ pid: process.pid }));
    const print = () => existsSync('go.md') ? console.log('transforming') : setTimeout(print, 10);
    print();
    setInterval(() => {}, 60_000);`,
  );
  // Its standard input stays open, as it may for a moment after the service was killed.
  const build = spawn(process.execPath, [BUILD, '--with-parent', sources], {
    detached: true,
    env: { ...process.env, NODE_OPTIONS: '' },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const [{ pid }] = (await eventually(calls, (made) => made.length > 0)) as [Call];
  const exited = once(build, 'exit');
  build.stdout.destroy();
  await write('go.md', '0');
  expect((await exited)[1]).toBe('SIGKILL');
  await eventually(
    async () => isAlive(pid),
    (alive) => !alive,
  );
});

test('several processes over one checkout build it once, and a killed one keeps no other waiting', async () => {
  const run = (): ChildProcess =>
    spawn(process.execPath, [BUILD, sources], {
      detached: true,
      env: { ...process.env, NODE_OPTIONS: '' },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
  const killed = run();
  await eventually(calls, (made) => made.length > 0);
  const others = [run(), run()];
  for (const { stdout } of others)
    expect(String((await once(stdout!, 'data'))[0])).toContain('Waiting for another process');
  process.kill(-killed.pid!, 'SIGKILL');
  await write('go.md', '0');
  const codes = await Promise.all(others.map(async (other) => (await once(other, 'exit'))[0]));
  expect(codes).toEqual([0, 0]);
  expect(await calls()).toHaveLength(2);
});
