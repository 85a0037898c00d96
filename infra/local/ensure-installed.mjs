// run.sh runs this before the command of each npm script, with whatever Node the machine has. It
// installs the packages of the lockfile where they are missing or stale, with --production only those
// that running the service needs, and fails where the Node on the scripts' PATH can't run TypeScript. Plain JavaScript without imports from node_modules, because
// nothing may be installed yet.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/** `--folder=<absolute path>` names a workspace that has its own lockfile. */
const folder = process.argv.find((arg) => arg.startsWith('--folder='))?.slice('--folder='.length);
const root = folder ? `${folder}/` : fileURLToPath(new URL('../../', import.meta.url));
const mutex = `${root}node_modules.installing`;
const production = process.argv.includes('--production');
/** The oldest major version that runs Turnlog. */
const LEAST_NODE = 24;
const majorOf = (version) => Number(version.replace(/^v/, '').split('.')[0]);
/** Whether the Node.js of the machine can run Turnlog. */
const hasNode = majorOf(process.version) >= LEAST_NODE;

/**
 * Whether packages are installed. npm writes its own copy of the lockfile into node_modules when an
 * install has succeeded. An optional package may be absent, because it is for another platform.
 */
function areInstalled(isWanted) {
  let present;
  try {
    present = JSON.parse(readFileSync(`${root}node_modules/.package-lock.json`, 'utf8')).packages;
  } catch {
    // The copy is missing or incomplete.
    return false;
  }
  const { packages } = JSON.parse(readFileSync(`${root}package-lock.json`, 'utf8'));
  return Object.entries(packages)
    .filter(([path, each]) => path !== '' && isWanted(each))
    .every(([path, { version, optional, devOptional }]) =>
      present[path] ? present[path].version === version : optional || devOptional,
    );
}

const isProductionInstalled = () => areInstalled(({ dev }) => !dev);
const isInstalled = () => (production ? isProductionInstalled() : areInstalled(() => true));

/**
 * Keeps two scripts that start at once on a fresh clone from running `npm ci` over each other: mkdir
 * is the atomic test-and-set. Resolves with the exit code of `install`, or 0 without an install.
 */
async function withInstallMutex(install) {
  for (let waited = 0; ; waited += 500) {
    try {
      mkdirSync(mutex);
      break;
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
      if (isInstalled()) return 0;
      if (waited === 0) console.error(`Waiting for another install, which holds ${mutex}…`);
      if (waited >= 300_000)
        throw new Error(`another install holds ${mutex}; remove the folder if none is running`, {
          cause: error,
        });
      await sleep(500);
    }
  }
  try {
    return isInstalled() ? 0 : await install();
  } finally {
    rmSync(mutex, { recursive: true, force: true });
  }
}

/**
 * `npm ci` removes what is installed, also under a service that is running. Development packages are
 * therefore added to those of production.
 */
function npmCommand() {
  // The optional packages of the root are Node.js itself: more than half of the download. Those of a
  // workspace are the programs of its tools for the platform.
  const omitsOptional = hasNode && !folder;
  if (production) return ['ci', '--omit=dev', ...(omitsOptional ? ['--omit=optional'] : [])];
  return isProductionInstalled() ? ['install', '--no-save'] : ['ci'];
}

async function runNpm() {
  const wanted = npmCommand();
  console.error(`Installing dependencies (npm ${wanted.join(' ')})…`);
  const npm = process.env.npm_execpath;
  const [command, args] = npm ? [process.execPath, [npm]] : ['npm', []];
  // No package needs its install script. npm's warnings about engines concern the Node that runs npm,
  // not the one that runs Turnlog.
  // A failure in a workspace is shown and tried again, so that it need not take minutes.
  const quiet = [
    '--no-audit',
    '--no-fund',
    `--fetch-retries=${folder ? 2 : 5}`,
    '--loglevel=error',
  ];
  const child = spawn(command, [...args, ...wanted, '--ignore-scripts', ...quiet], {
    cwd: root,
    stdio: ['ignore', 2, 2],
  });
  // This process must outlive the npm process that a signal ends. Otherwise the mutex would stay, and
  // every later start would wait for it.
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => child.kill(name));
  const [code] = await once(child, 'exit');
  return code ?? 1;
}

if (!isInstalled()) {
  const code = await withInstallMutex(runNpm);
  if (code !== 0) process.exit(code);
}

const scriptsNode = execFileSync('node', ['--version'], {
  encoding: 'utf8',
  shell: process.platform === 'win32',
}).trim();
if (!folder && majorOf(scriptsNode) < LEAST_NODE) {
  console.error(
    `Turnlog needs Node.js ${LEAST_NODE} or newer; this is ${scriptsNode}. Install a newer one, or on Linux (x64, arm64) delete node_modules and try again: npm then installs the right one.`,
  );
  process.exit(1);
}
