// Runs before every npm script, under whatever Node the machine has: installs what the lockfile asks for when it is
// missing or stale, and says so when the Node on the scripts' path can't run TypeScript. Plain JavaScript, no imports
// from node_modules, because nothing may be installed yet.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));
const mutex = `${root}node_modules.installing`;

/** npm writes its own copy of the lockfile into node_modules when an install has succeeded; an optional package may be another platform's. */
function isInstalled() {
  const installed = `${root}node_modules/.package-lock.json`;
  if (!existsSync(installed)) return false;
  const present = JSON.parse(readFileSync(installed, 'utf8')).packages;
  const wanted = Object.entries(JSON.parse(readFileSync(`${root}package-lock.json`, 'utf8')).packages).filter(([path]) => path !== '');
  return wanted.every(([path, { version, optional }]) => (present[path] ? present[path].version === version : optional));
}

/** Two scripts started at once on a fresh clone must not run `npm ci` over each other: mkdir is the atomic test-and-set. */
async function withInstallMutex(install) {
  for (let waited = 0; ; waited += 500) {
    try {
      mkdirSync(mutex);
      break;
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
      if (isInstalled()) return;
      if (waited >= 300_000) throw new Error(`another install holds ${mutex}; remove the folder if none is running`, { cause: error });
      await sleep(500);
    }
  }
  try {
    if (!isInstalled()) install();
  } finally {
    rmSync(mutex, { recursive: true, force: true });
  }
}

if (!isInstalled()) {
  await withInstallMutex(() => {
    console.error('Installing dependencies (npm ci)…');
    const npm = process.env.npm_execpath;
    const [command, args] = npm ? [process.execPath, [npm]] : ['npm', []];
    // Nothing here needs an install script; npm's remarks about engines concern the Node that runs npm, not the one that runs Turnlog.
    const result = spawnSync(command, [...args, 'ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: root, stdio: ['ignore', 2, 2] });
    if (result.status !== 0) process.exit(result.status ?? 1);
  });
}

const scriptsNode = execFileSync('node', ['--version'], { encoding: 'utf8', shell: process.platform === 'win32' }).trim();
if (Number(scriptsNode.slice(1).split('.')[0]) < 24) {
  console.error(`Turnlog needs Node.js 24 or newer; this is ${scriptsNode}, and no packaged one exists for ${process.platform}-${process.arch}. Install Node.js 24 and try again.`);
  process.exit(1);
}
