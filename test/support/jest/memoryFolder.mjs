// For the tests of `npm test`, each of which begins with new files and waits for the disk with every
// event: their files are in memory where the machine has a folder for that. The suites that kill
// processes and fill disks keep to the disk.
import { mkdirSync, readdirSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import prepareEnvironment from './environment.mjs';

const MEMORY = '/dev/shm';
/** Followed by the id of the process that runs the tests. */
const PREFIX = 'turnlog-tests-';
/** Several times what the tests write at one time. Containers have less by default. */
const LEAST_BYTES = 2 ** 31;

const removeFolder = (name) => rmSync(join(MEMORY, name), { recursive: true, force: true });

/** A run that was killed leaves its folder. */
function removeFoldersOfEndedRuns() {
  for (const name of readdirSync(MEMORY).filter((found) => found.startsWith(PREFIX))) {
    try {
      process.kill(Number(name.slice(PREFIX.length)), 0);
    } catch (error) {
      if (error.code === 'ESRCH') removeFolder(name);
    }
  }
}

export default function prepareWithFilesInMemory() {
  prepareEnvironment();
  if (process.env.TMPDIR !== undefined) return;
  try {
    removeFoldersOfEndedRuns();
    const { bavail, bsize } = statfsSync(MEMORY);
    if (bavail * bsize < LEAST_BYTES) return;
    const name = PREFIX + process.pid;
    mkdirSync(join(MEMORY, name), { mode: 0o700 });
    process.env.TMPDIR = join(MEMORY, name);
    process.on('exit', () => removeFolder(name));
  } catch {
    // There is no such folder: os.tmpdir() stays what it is.
  }
}
