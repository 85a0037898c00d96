import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('./eventstoredb-node/main.ts', import.meta.url));

export interface EventStoreDbProcess {
  connectionString: string;
  port: number;
  /** Cuts every client off. */
  drop: () => void;
  /** Ends the process, with SIGKILL unless told otherwise, and resolves when it is gone. */
  kill: (signal?: NodeJS.Signals) => Promise<void>;
}

interface Options {
  folder: string;
  port?: number;
  /** The version of a server that the node passes for. */
  version?: string;
  /** With TLS, and users that have passwords. */
  secured?: boolean;
}

/** Starts a node as a process of its own on the log in a folder. */
export async function startEventStoreDbProcess(options: Options): Promise<EventStoreDbProcess> {
  const { folder, port = 0, version, secured = false } = options;
  const place = ['--folder', folder, '--port', String(port)];
  const kind = [...(version === undefined ? [] : ['--version', version]), ...(secured ? ['--tls', '--users'] : [])];
  const child = spawn(process.execPath, [MAIN, ...place, ...kind], { stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  const [connectionString] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  return {
    connectionString,
    port: Number(new URL(connectionString).port),
    drop: () => void child.stdin.write('drop\n'),
    async kill(signal = 'SIGKILL') {
      child.kill(signal);
      await exited;
    },
  };
}
