import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { debianProgram } from '../../processes/debianProgram.ts';
import { freePort } from '../../processes/freePort.ts';
import { unprivileged } from './postgresProcess.ts';

export const PGBOUNCER = debianProgram('pgbouncer');

interface PgBouncer {
  /** The database of the URL that it was started for, through the pooler. */
  url: string;
  close: () => Promise<void>;
}

/**
 * A real PgBouncer in front of a database. `ignore` are the settings of a session that it takes
 * and drops; it refuses others.
 */
export async function startPgBouncer(
  databaseUrl: string,
  { mode, ignore }: { mode: 'transaction' | 'session'; ignore: string },
): Promise<PgBouncer> {
  const folder = await mkdtemp(join(tmpdir(), 'turnlog-pgbouncer-'));
  await chmod(folder, 0o755);
  const server = new URL(databaseUrl);
  const port = await freePort();
  const file = join(folder, 'pgbouncer.ini');
  await writeFile(
    file,
    `[databases]
* = host=${server.hostname} port=${server.port} user=${server.username}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
ignore_startup_parameters = ${ignore}
`,
  );
  const child = spawn(PGBOUNCER!, [file], {
    ...unprivileged(),
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const exited = once(child, 'exit');
  for await (const line of createInterface({ input: child.stderr })) {
    if (line.includes('process up')) break;
  }
  child.stderr.resume();
  const url = new URL(databaseUrl);
  url.port = String(port);
  return {
    url: url.href,
    async close() {
      child.kill('SIGTERM');
      await exited;
      await rm(folder, { recursive: true });
    },
  };
}
