import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../eventstoredb-node/main.ts', import.meta.url));

export interface EventStoreDbProcess {
  connectionString: string;
  port: number;
  pid: number;
  /** Sends a line to the node's standard input. */
  command: (line: string) => void;
  signal: (signal: NodeJS.Signals) => void;
  /** Cuts every client off. */
  drop: () => void;
  /** Ends the process, with SIGKILL unless told otherwise, and resolves when it is gone. */
  kill: (signal?: NodeJS.Signals) => Promise<void>;
}

/** Starts a node as a process of its own, and resolves once it listens. */
export async function spawnEventStoreDbNode(
  options: readonly string[],
): Promise<EventStoreDbProcess> {
  const child = spawn(process.execPath, [MAIN, ...options], { stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  const first = once(createInterface({ input: child.stdout }), 'line') as Promise<[string]>;
  const line = await Promise.race([first, exited.then(() => undefined)]);
  if (!line || child.pid === undefined) throw new Error('the node ended before it listened');
  const [connectionString] = line;
  const command = (text: string): void => void child.stdin.write(`${text}\n`);
  return {
    connectionString,
    port: Number(new URL(connectionString).port),
    pid: child.pid,
    command,
    signal: (signal) => void child.kill(signal),
    drop: () => command('drop'),
    async kill(signal = 'SIGKILL') {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal);
      await exited;
    },
  };
}

interface Options {
  folder: string;
  port?: number;
  /** The version of a server that the node passes for. */
  version?: string;
  /** With TLS, and users that have passwords. */
  secured?: boolean;
  /** How long it takes from writing an append to answering it. */
  commitMs?: number;
}

/** Starts a node on the log in a folder. */
export function startEventStoreDbProcess(options: Options): Promise<EventStoreDbProcess> {
  const { folder, port = 0, version, secured = false, commitMs } = options;
  const kind = [
    ...(version === undefined ? [] : ['--version', version]),
    ...(secured ? ['--tls', '--users'] : []),
    ...(commitMs === undefined ? [] : ['--commit-ms', String(commitMs)]),
  ];
  return spawnEventStoreDbNode(['--folder', folder, '--port', String(port), ...kind]);
}
