import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import type { Logger } from '../../shared/lib/logger.ts';
import { resolvesWithin } from '../../shared/lib/time/resolvesWithin.ts';
import type { ConsoleBuild, ConsoleState } from '../../shared/ports/consoleBuild.ts';
import { foldersOf, isBuilt } from './fingerprint.ts';

const BUILD = fileURLToPath(new URL('build.ts', import.meta.url));
/** The folder of the console's sources. */
const CONSOLE_SOURCES = fileURLToPath(new URL('../../services/console', import.meta.url));

/** A build takes less than a minute, and the download of its packages seldom more. */
const BUILD_MS = 10 * 60_000;
/** The least time between a failure and the next attempt. */
const RETRY_MS = 30_000;
const KILLED_WITHIN_MS = 2_000;
const KEPT_CHARACTERS = 4_000;

/** The variables that npm and Node need. Vite's plugins get no secret of the service. */
const PASSED_ON =
  /^(?:PATH|HOME|USER|LANG|LC_\w+|TMPDIR|XDG_\w+|(?:https?|no|all)_proxy|NODE_EXTRA_CA_CERTS|SSL_CERT_\w+|npm_\w+)$/i;

const environment = (): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => PASSED_ON.test(name)));

type BuildProcess = ChildProcessByStdio<Writable, Readable, Readable>;

/** Keeps the end of the text that a stream brings. */
function keepEnd(stream: Readable): () => string {
  let tail = '';
  stream.setEncoding('utf8').on('data', (text: string) => {
    tail = (tail + text).slice(-KEPT_CHARACTERS);
  });
  return () => stripVTControlCharacters(tail).trim();
}

/** Kills a build and all that it has started. */
function killGroup({ pid }: BuildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // All of them have ended.
  }
}

interface ConsoleBuildOptions {
  logger: Logger;
  /** The folder of the sources; by default that of the console. */
  sources?: string | undefined;
  buildMs?: number;
  retryMs?: number;
}

/**
 * Creates the build of the console. It does nothing until it is started or visited. Disposing of it
 * ends a build in progress.
 */
export function createConsoleBuild({
  logger,
  sources = CONSOLE_SOURCES,
  buildMs = BUILD_MS,
  retryMs = RETRY_MS,
}: ConsoleBuildOptions): ConsoleBuild & AsyncDisposable {
  let initialCheck: Promise<boolean> | undefined;
  let isDisposed = false;
  let running: BuildProcess | undefined;
  /** Undefined until the build is started, or need not be. */
  let state: (() => ConsoleState) | undefined;

  const wasBuilt = (): Promise<boolean> => (initialCheck ??= isBuilt(sources).catch(() => false));

  function fail(reason: string): void {
    const failedAt = performance.now();
    logger.warn({ reason }, 'the console could not be built; the API is not affected');
    state = () => ({
      kind: 'failed',
      reason,
      retryMs: Math.max(0, failedAt + retryMs - performance.now()),
    });
  }

  async function runBuild(startedAt: number): Promise<void> {
    const build = spawn(process.execPath, [BUILD, '--with-parent', sources], {
      detached: true,
      env: environment(),
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    running = build;
    build.stdin.on('error', () => undefined);
    const [output, errors] = [keepEnd(build.stdout), keepEnd(build.stderr)];
    state = () => ({
      kind: 'building',
      elapsedMs: performance.now() - startedAt,
      output: output().split('\n').at(-1)!,
    });
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      killGroup(build);
    }, buildMs).unref();
    const ended = once(build, 'close').finally(() => clearTimeout(timer));
    const [code, signal] = (await ended) as [number | null, NodeJS.Signals | null];
    running = undefined;
    if (isDisposed) return;
    if (code === 0 && (await isBuilt(sources))) {
      state = () => ({ kind: 'ready' });
      logger.info({ ms: Math.round(performance.now() - startedAt) }, 'the console was built');
    } else if (isLate)
      fail(`The build took longer than ${Math.ceil(buildMs / 60_000)} minutes.\n\n${output()}`);
    else fail(errors() || `The build ended with ${code ?? signal}.\n\n${output()}`);
  }

  async function begin(): Promise<void> {
    const startedAt = performance.now();
    state = () => ({ kind: 'building', elapsedMs: 0, output: '' });
    logger.info('the console is being built in the background');
    try {
      await runBuild(startedAt);
    } catch (error) {
      fail(`The build could not be started: ${(error as Error).message}`);
    }
  }

  async function startUnlessBuilt(): Promise<void> {
    if (await wasBuilt()) state = () => ({ kind: 'ready' });
    else if (!isDisposed) await begin();
  }

  return {
    folder: foldersOf(sources).built,
    start: () => void startUnlessBuilt(),
    async visit() {
      const current = state?.();
      if (current?.kind === 'failed' && current.retryMs === 0 && !isDisposed) void begin();
      if (state) return state();
      return (await wasBuilt())
        ? { kind: 'ready' }
        : { kind: 'building', elapsedMs: 0, output: 'The service is starting.' };
    },
    async [Symbol.asyncDispose]() {
      isDisposed = true;
      if (!running) return;
      const ended = once(running, 'close');
      killGroup(running);
      await resolvesWithin(ended, KILLED_WITHIN_MS);
    },
  };
}
