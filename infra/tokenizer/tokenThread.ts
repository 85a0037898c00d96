import { Worker } from 'node:worker_threads';

/** The tables, and what is remembered of words. */
const HEAP_MB = 128;

interface Asked {
  resolve: (tokens: number) => void;
  reject: (error: unknown) => void;
}

interface TokenThread {
  /** Tokens of a slice. Errors: what ended the thread; the next call starts another. */
  count(slice: string): Promise<number>;
  close(): Promise<void>;
}

function startWorker(onEnd: () => void) {
  const worker = new Worker(new URL('./tokenWorker.ts', import.meta.url), {
    name: 'tokenizer',
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
  });
  worker.unref();
  const asked: Asked[] = [];
  let cause: unknown;
  worker.on('message', (tokens: number) => asked.shift()?.resolve(tokens));
  worker.on('error', (error: unknown) => (cause = error));
  worker.on('exit', () => {
    onEnd();
    for (const { reject } of asked)
      reject(new Error('The thread that counts tokens has ended.', { cause }));
  });
  return {
    count: (slice: string): Promise<number> =>
      new Promise((resolve, reject) => {
        asked.push({ resolve, reject });
        worker.postMessage(slice);
      }),
    terminate: () => worker.terminate(),
  };
}

/** A thread that counts tokens, started when it is first asked. */
export function createTokenThread(): TokenThread {
  let running: ReturnType<typeof startWorker> | undefined;
  return {
    count: (slice) => (running ??= startWorker(() => (running = undefined))).count(slice),
    close: async () => void (await running?.terminate()),
  };
}
