import { createFairSemaphore } from '../../shared/lib/concurrency/fairSemaphore.ts';
import { LIMITS } from '../../shared/limits.ts';
import type { TokenCounter } from '../../shared/ports/tokenCounter.ts';
import { LONGEST_TOKEN, slicesOf } from './countTokens.ts';
import { Worker } from 'node:worker_threads';

/** The heap limit of the thread, for the tables and the word cache. */
const HEAP_MB = 128;
/** Most memory that a count allocates is garbage at once. The default takes several times as much. */
const YOUNG_MB = 4;

interface PendingCount {
  resolve: (tokens: number) => void;
  reject: (error: unknown) => void;
}

interface TokenThread {
  /** Counts the tokens of texts. Rejects where the thread ends; the next call starts another. */
  count(texts: readonly string[]): Promise<number>;
  close(): Promise<void>;
}

function startWorker(onEnd: () => void) {
  const worker = new Worker(new URL('./tokenWorker.ts', import.meta.url), {
    name: 'tokenizer',
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB, maxYoungGenerationSizeMb: YOUNG_MB },
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
    count: (texts: readonly string[]): Promise<number> =>
      new Promise((resolve, reject) => {
        pending.push({ resolve, reject });
        worker.postMessage(texts);
      }),
    terminate: () => worker.terminate(),
  };
}

/** A thread that counts tokens. The first call starts it. */
function createTokenThread(): TokenThread {
  let running: ReturnType<typeof startWorker> | undefined;
  return {
    count: (texts) => (running ??= startWorker(() => (running = undefined))).count(texts),
    close: async () => void (await running?.terminate()),
  };
}

/**
 * Two slices at a time, one per account: the thread has the next one when it has finished the
 * first.
 */
const TWO = { permits: 2, bytes: Infinity };

/**
 * Counts tokens in the o200k_base encoding of OpenAI's current models. The count is exact for
 * ordinary text; an unbroken run of more than 256 letters or spaces may count one token too many
 * per 256. A separate thread counts slice by slice: its tables take 20 MB and a tenth of a second to
 * load. Accounts take turns.
 */
export function createTokenCounter(): TokenCounter & AsyncDisposable {
  const thread = createTokenThread();
  const semaphore = createFairSemaphore('token_counts', TWO);
  const closing = new AbortController();

  async function countSlice(
    slice: readonly string[],
    account_id: string,
    deadline: number,
  ): Promise<number> {
    using _permit = await semaphore.acquire(
      { account_id },
      { waitMs: Math.max(0, deadline - performance.now()), signal: closing.signal },
    );
    return await thread.count(slice);
  }

  return {
    longestToken: LONGEST_TOKEN,
    async count(texts, accountId, atMost = Infinity) {
      let tokens = 0;
      const deadline = performance.now() + LIMITS.run.countMs;
      for (const slice of slicesOf(texts)) {
        if (tokens > atMost) return tokens;
        tokens += await countSlice(slice, accountId, deadline);
      }
      return tokens;
    },
    async [Symbol.asyncDispose]() {
      closing.abort(new Error('The tokenizer is closed.'));
      await thread.close();
    },
  };
}
