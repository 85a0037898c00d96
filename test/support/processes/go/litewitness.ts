import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { run } from '../../../../infra/local/kafka/jars.ts';
import { EMPTY_ROOT } from '../../../../shared/transparency/tlog/merkle.ts';
import { debianProgram } from '../debianProgram.ts';
import { freePort } from '../freePort.ts';
import { eventually } from '../operator.ts';
import { plainEnvironment } from '../plainEnvironment.ts';

/** Holds the key of litewitness. */
export const SSH_AGENT = debianProgram('ssh-agent');

export interface Litewitness {
  url: string;
  vkey: string;
  /** Lets it know a log, as `witnessctl add-log` and `add-key` do. */
  addLog(origin: string, vkey: string): void;
  /** The size that it cosigned last. */
  sizeOf(origin: string): number;
  /** Forgets what it cosigned, as with a database of before. */
  forget(origin: string): void;
  close(): Promise<void>;
}

async function ended(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit');
  if (child.exitCode === null && child.signalCode === null && child.kill('SIGTERM')) await exited;
}

/** Starts an ssh-agent with a new key. Resolves with the key's fingerprint. */
async function startAgent(socket: string, key: string) {
  const agent = spawn(SSH_AGENT!, ['-D', '-a', socket], { stdio: 'ignore' });
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key]);
  const add = (): Promise<string> =>
    run('env', [`SSH_AUTH_SOCK=${socket}`, 'ssh-add', '-q', key]).catch(() => 'failed');
  await eventually(add, (said) => said === '');
  const [, fingerprint = ''] = (await run('ssh-keygen', ['-l', '-f', key])).split(' ');
  return { agent, fingerprint };
}

/** Starts litewitness, unmodified, with a key and a database of its own. */
export async function startLitewitness(tools: string, name: string): Promise<Litewitness> {
  const folder = await mkdtemp(join(tmpdir(), 'turnlog-litewitness-'));
  const [socket, file] = [join(folder, 'agent.sock'), join(folder, 'witness.db')];
  const { agent, fingerprint } = await startAgent(socket, join(folder, 'key'));
  const port = await freePort();
  const witness = spawn(
    join(tools, 'litewitness'),
    [
      ['-name', name],
      ['-db', file],
      ['-ssh-agent', socket],
      ['-listen', `127.0.0.1:${port}`],
      ['-key', fingerprint],
    ].flat(),
    { env: plainEnvironment(), stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let said = '';
  witness.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
  const url = `http://127.0.0.1:${port}`;
  await eventually(
    () =>
      fetch(url).then(
        ({ ok }) => ok,
        () => witness.exitCode !== null,
      ),
    Boolean,
  );
  const [, vkey] = /vkey="?([^\s"]+)/.exec(said) ?? [];
  if (witness.exitCode !== null || vkey === undefined) throw new Error(`no litewitness: ${said}`);
  const database = new DatabaseSync(file);
  const empty = EMPTY_ROOT.toString('base64');
  return {
    url,
    vkey,
    addLog(origin, logVkey) {
      database.prepare('INSERT INTO log VALUES (?, 0, ?)').run(origin, empty);
      database.prepare('INSERT INTO key VALUES (?, ?)').run(origin, logVkey);
    },
    sizeOf: (origin) =>
      database.prepare('SELECT tree_size FROM log WHERE origin = ?').get(origin)![
        'tree_size'
      ] as number,
    forget: (origin) =>
      void database
        .prepare('UPDATE log SET tree_size = 0, tree_hash = ? WHERE origin = ?')
        .run(empty, origin),
    async close() {
      database.close();
      await ended(witness);
      await ended(agent);
      await rm(folder, { recursive: true });
    },
  };
}
