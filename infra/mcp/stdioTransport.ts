import { once } from 'node:events';
import { spawn, type ChildProcess } from 'node:child_process';
import {
  ReadBuffer,
  serializeMessage,
  type JSONRPCMessage,
  type Transport,
} from '@modelcontextprotocol/client';
import { LIMITS } from '../../shared/limits.ts';
import { resolvesWithin } from '../../shared/lib/time/resolvesWithin.ts';
import type { McpTransport } from './server.ts';

type ProcessOptions = Extract<McpTransport, { kind: 'process' }>;

/** A transport that can quote what its server said before anything was asked of it. */
export interface StdioTransport extends Transport {
  /** The end of what the process has written to its standard error. */
  lastWords(): string;
}

const LAST_WORDS_MS = 200;

/** Signals a process and all processes that it has started. */
function killGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // All of them have ended.
  }
}

/** Those to end when this process exits: one listener for all, however many servers there are. */
const live = new Set<ChildProcess>();
const killAll = (): void => live.forEach((child) => killGroup(child, 'SIGKILL'));

function killAtExit(child: ChildProcess): void {
  if (live.size === 0) process.once('exit', killAll);
  live.add(child);
}

function forget(child: ChildProcess): void {
  live.delete(child);
  if (live.size === 0) process.removeListener('exit', killAll);
}

/**
 * A server as a child process that speaks over its standard input and output. The library's own
 * transport leaves behind what its process has started; this one has a process group of its own,
 * which is ended as a whole: when it is closed, when the server dies, and when this process exits.
 */
export function createStdioTransport(options: ProcessOptions): StdioTransport {
  const buffer = new ReadBuffer({ maxBufferSize: LIMITS.mcp.messageBytes });
  let child: ChildProcess | undefined;
  let ended: Promise<void> = Promise.resolve();
  let words = '';

  function read(chunk: Buffer): void {
    try {
      buffer.append(chunk);
    } catch (error) {
      transport.onerror?.(error as Error);
      void transport.close();
      return;
    }
    for (;;) {
      try {
        const message = buffer.readMessage();
        if (message === null) return;
        transport.onmessage?.(message);
      } catch (error) {
        // The line is no message. Continue with the next one.
        transport.onerror?.(error as Error);
      }
    }
  }

  function attach(started: ChildProcess): void {
    const { promise, resolve } = Promise.withResolvers<void>();
    ended = promise;
    started.stdout!.on('data', read);
    started.stderr!.on('data', (chunk: Buffer) => {
      words = (words + chunk.toString('utf8')).slice(-LIMITS.mcp.quotedChars);
    });
    for (const stream of [started.stdin!, started.stdout!, started.stderr!])
      stream.on('error', (error) => transport.onerror?.(error));
    const finish = (): void => {
      resolve();
      transport.onclose?.();
    };
    started.once('exit', () => {
      killGroup(started, 'SIGKILL');
      forget(started);
      // Wait for its last output. A process that has left the group may keep the pipes open.
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
        killAtExit(child);
        attach(child);
      }),
    async send(message: JSONRPCMessage) {
      const { stdin } = child ?? {};
      if (!stdin?.writable) throw new Error('the server has ended');
      if (stdin.writableLength > LIMITS.mcp.messageBytes)
        throw new Error('the server reads nothing');
      stdin.write(serializeMessage(message));
    },
    async close() {
      const closing = child;
      if (closing?.pid === undefined) {
        if (closing) forget(closing);
        return;
      }
      closing.stdin?.end();
      const { closeMs } = LIMITS.mcp;
      if (!(await resolvesWithin(ended, closeMs / 4))) killGroup(closing, 'SIGTERM');
      if (!(await resolvesWithin(ended, closeMs / 2))) killGroup(closing, 'SIGKILL');
      await resolvesWithin(ended, closeMs / 4);
      buffer.clear();
    },
  };
  return transport;
}
