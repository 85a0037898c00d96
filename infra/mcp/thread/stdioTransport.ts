import { once } from 'node:events';
import { spawn, type ChildProcess } from 'node:child_process';
import type { Readable } from 'node:stream';
import {
  deserializeMessage,
  serializeMessage,
  type JSONRPCMessage,
  type Transport,
} from '@modelcontextprotocol/client';
import { KIB } from '../../../shared/lib/units.ts';
import { RUN_LIMITS } from '../../../shared/runs/limits.ts';
import { resolvesWithin } from '../../../shared/lib/time/resolvesWithin.ts';
import { hasMoreValues } from '../../../shared/lib/validation/jsonComplexity.ts';
import type { McpTransport } from '../server.ts';
import type { Inflow } from './inflow.ts';
import { createLineSplitter } from './lines.ts';
import type { UnfinishedMessage } from './unfinishedMessages.ts';

type ProcessOptions = Extract<McpTransport, { kind: 'process' }>;

/** A transport that can quote its server's output before the first request. */
interface StdioTransport extends Transport {
  /** The end of what the process has written to its standard error. */
  lastWords(): string;
}

const LAST_WORDS_MS = 200;
/** A line that has not ended is not counted up to this length, that of a chunk from a pipe. */
const UNCOUNTED_BYTES = 64 * KIB;
/** The beginning of a log message. That of a response has no `method`. */
const LOG_HEAD =
  /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"method"\s*:\s*"notifications\/message"/;
const LOG_HEAD_BYTES = 128;

const isLog = (line: Buffer): boolean =>
  LOG_HEAD.test(line.subarray(0, LOG_HEAD_BYTES).toString('latin1'));

/** Signals a process and all processes that it has started. */
function killGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // All of them have ended.
  }
}

/**
 * Kills the process group of `child` when this thread or process ends in any way, also by a crash:
 * a shell waits for the end of its standard input. Returns a function that ends the guard.
 */
function guardGroup({ pid }: ChildProcess): () => void {
  const guard = spawn('/bin/sh', ['-c', 'read -r _ || kill -s KILL -- "-$0"', String(pid)], {
    env: {},
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  guard.on('error', () => undefined);
  guard.stdin.on('error', () => undefined);
  return () => void guard.stdin.end('\n');
}

/**
 * A server as a child process that speaks over its standard input and output. The library's own
 * transport leaves behind what its process has started; this one has its own process group,
 * which is ended as a whole: when it is closed, when the server dies, and when this process ends.
 * The output of the process is measured before it is parsed, and log messages are not parsed.
 * A long line waits for the memory that all servers share, and must end within `messageMs`.
 */
export function createStdioTransport(
  options: ProcessOptions,
  inflow: Inflow,
  messageMs: number,
): StdioTransport {
  const over = new AbortController();
  let child: ChildProcess | undefined;
  let ended: Promise<void> = Promise.resolve();
  let words = '';
  const { messageBytes, messageValues, quotedChars, closeMs } = RUN_LIMITS.mcp;
  const lines = createLineSplitter(messageBytes, () =>
    inflow.exceed('it sent a message that is too long'),
  );
  let countedBytes = 0;
  let lineTimer: NodeJS.Timeout | undefined;

  function receive(line: Buffer): void {
    if (isLog(line)) return inflow.discardedLog();
    if (!inflow.message()) return;
    const text = line.toString();
    if (hasMoreValues(text, messageValues))
      return inflow.exceed('it sent a message with too many values');
    let message: JSONRPCMessage;
    try {
      message = deserializeMessage(text);
    } catch (error) {
      inflow.strayLine();
      return transport.onerror?.(error as Error);
    }
    return transport.onmessage?.(message);
  }

  /** Pauses reading until the line that has not ended may take its memory. */
  async function holdLine(stdout: Readable, held: UnfinishedMessage): Promise<void> {
    const length = lines.unfinishedBytes();
    const bytes = length > UNCOUNTED_BYTES ? length : 0;
    if (bytes === countedBytes) return;
    // A shorter line than before is another one.
    if (countedBytes === 0 || bytes < countedBytes) {
      clearTimeout(lineTimer);
      if (bytes > 0)
        lineTimer = setTimeout(() => inflow.exceed('it does not end a message'), messageMs).unref();
    }
    countedBytes = bytes;
    stdout.pause();
    await held.resize(bytes, over.signal);
    stdout.resume();
  }

  function read(chunk: Buffer, stdout: Readable, held: UnfinishedMessage): void {
    if (!inflow.bytes(chunk.length)) return void stdout.destroy();
    for (const line of lines.split(chunk)) receive(line);
    holdLine(stdout, held).catch(() => stdout.destroy());
  }

  function attach(started: ChildProcess): void {
    const { promise, resolve } = Promise.withResolvers<void>();
    const endGuard = guardGroup(started);
    ended = promise;
    const held = inflow.holdUnfinished();
    const stdout = started.stdout!;
    stdout.on('data', (chunk: Buffer) => read(chunk, stdout, held));
    started.stderr!.on('data', (chunk: Buffer) => {
      words = (words + chunk.toString('utf8')).slice(-quotedChars);
      if (!inflow.bytes(chunk.length)) started.stderr!.destroy();
    });
    for (const stream of [started.stdin!, stdout, started.stderr!])
      stream.on('error', (error) => transport.onerror?.(error));
    const finish = (): void => {
      // A process that has left the group may keep them open.
      for (const stream of started.stdio) stream?.destroy();
      clearTimeout(lineTimer);
      over.abort();
      held.release();
      resolve();
      transport.onclose?.();
    };
    started.once('exit', () => {
      killGroup(started, 'SIGKILL');
      endGuard();
      // Wait for its last output.
      void resolvesWithin(once(started, 'close'), LAST_WORDS_MS).then(finish, finish);
    });
  }

  const transport: StdioTransport = {
    lastWords: () => words,
    start: () =>
      new Promise((resolve, reject) => {
        const { command, args, env, cwd } = options;
        child = spawn(command, args, { env, cwd, detached: true, stdio: 'pipe' });
        child.once('spawn', () => resolve());
        child.once('error', reject);
        if (child.pid !== undefined) attach(child);
      }),
    async send(message: JSONRPCMessage) {
      const { stdin } = child ?? {};
      if (!stdin?.writable) throw new Error('the server has ended');
      if (stdin.writableLength > messageBytes) throw new Error('the server reads nothing');
      stdin.write(serializeMessage(message));
    },
    async close() {
      if (child?.pid === undefined) return;
      child.stdin?.end();
      if (!(await resolvesWithin(ended, closeMs / 4))) killGroup(child, 'SIGTERM');
      if (!(await resolvesWithin(ended, closeMs / 2))) killGroup(child, 'SIGKILL');
      await resolvesWithin(ended, closeMs / 4);
    },
  };
  return transport;
}
