// Runs while the image is built: starts the service as it will be started, so that
// NODE_COMPILE_CACHE holds the compiled code of all that it loads, and stops it. Fails, and the
// build with it, when the service does not start or does not end well.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folder = mkdtempSync(join(tmpdir(), 'turnlog-'));
const service = spawn(
  process.execPath,
  ['--expose-gc', '--max-semi-space-size=8', 'services/main.ts'],
  {
    env: { ...process.env, HOST: '127.0.0.1', PORT: '0', DATA_DIR: folder, LOG_LEVEL: 'warn' },
    stdio: ['ignore', 'pipe', 'inherit'],
  },
);
// The first thing that it writes is where it listens; a service that ends without a word closes its
// output.
service.stdout.once('data', () => service.kill('SIGTERM'));
service.stdout.resume();
const [code, signal] = (await once(service, 'close')) as [number | null, string | null];
rmSync(folder, { recursive: true });
if (code !== 0) throw new Error(`the service ended with ${code ?? signal}`);
