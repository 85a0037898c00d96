import { Worker } from 'node:worker_threads';

/** For the tables and the cache of words. */
const HEAP_MB = 128;

interface PendingCount {
  resolve: (tokens: number) => void;
  reject: (error: unknown) => void;
}

interface TokenThread {
  /** Counts the tokens of a slice. Rejects where the thread ends; the next call starts another. */
  count(slice: string): Promise<number>;
  close(): Promise<void>;
}

function startWorker(onEnd: () => void) {
  const worker = new Worker(new URL('./tokenWorker.ts', import.meta.url), {
    name: 'tokenizer',
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
  });
  worker.unref();
  const pending: PendingCount[] = [];
  let cause: unknown;
  worker.on('message', (tokens: number) => pending.shift()?.resolve(tokens));
  worker.on('error', (error: unknown) => (cause = error));
  worker.on('exit', () => {
    onEnd();
    for (const { reject } of pending)
      reject(new Error('The thread that counts tokens has ended.', { cause }));
  });
  return {
    count: (slice: string): Promise<number> =>
      new Promise((resolve, reject) => {
        pending.push({ resolve, reject });
        worker.postMessage(slice);
      }),
    terminate: () => worker.terminate(),
  };
}

/** A thread that counts tokens. The first call starts it. */
export function createTokenThread(): TokenThread {
  let running: ReturnType<typeof startWorker> | undefined;
  return {
    count: (slice) => (running ??= startWorker(() => (running = undefined))).count(slice),
    close: async () => void (await running?.terminate()),
  };
}
