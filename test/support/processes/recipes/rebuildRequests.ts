import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { root } from '../../docs/projectFiles.ts';
import type { TestService } from '../../http/service.ts';

const PROGRAM = join(root, 'examples/python/rebuild_requests.py');
const LIMIT_MS = 60_000;

/** How a program of examples/python has ended, and what it said. */
interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

/** Has the program of examples/ build the requests of a session again, from the API alone. */
export const rebuiltByPython = (
  { url, key }: Pick<TestService, 'url' | 'key'>,
  ...args: readonly string[]
): Promise<Ended> =>
  new Promise((resolve) => {
    const env = { ...process.env, TURNLOG_URL: url, TURNLOG_API_KEY: key };
    const options = { env, timeout: LIMIT_MS, maxBuffer: 64 * 1024 * 1024 };
    execFile('python3', ['-B', PROGRAM, ...args], options, (error, stdout, stderr) => {
      const code = error ? (typeof error.code === 'number' ? error.code : -1) : 0;
      resolve({ code, stdout, stderr });
    });
  });
