import { createFairSemaphore } from '../../shared/lib/concurrency/fairSemaphore.ts';
import { LIMITS } from '../../shared/limits.ts';
import type { TokenCounter } from '../../shared/ports/tokenCounter.ts';
import { LONGEST_TOKEN, loadTokenizer, slicesOf, type Count } from './countTokens.ts';
import { createTokenThread } from './tokenThread.ts';

/**
 * UTF-16 units that are counted in the calling thread between two turns of its event loop: 2 ms of
 * text that the tokenizer has never seen. A thread's answer takes longer than these take to count.
 */
const AT_ONCE = 2_048;
/** Of one call. */
const SHORT = 512;

/** Two slices at a time, one of an account: the thread has the next when it is done with one. */
const TWO = { permits: 2, bytes: Infinity };

/** The few texts that can be counted in this thread without holding it up. */
function countsAtOnce(): (length: number) => boolean {
  let budget = AT_ONCE;
  return (length) => {
    if (length > Math.min(budget, SHORT)) return false;
    if (budget === AT_ONCE) setImmediate(() => (budget = AT_ONCE));
    budget -= length;
    return true;
  };
}

/**
 * Counts in the o200k_base encoding of OpenAI's current models. Exact for ordinary text; a run of
 * more than 256 letters or spaces without a break may count a token too many per 256. A little is
 * counted in the calling thread, all else slice by slice in one of its own, where the accounts take
 * turns.
 */
export function createTokenCounter(): TokenCounter & AsyncDisposable {
  const thread = createTokenThread();
  const semaphore = createFairSemaphore(TWO);
  const fitsAtOnce = countsAtOnce();
  const closing = new AbortController();
  let loading: Promise<Count> | undefined;

  async function countSlice(slice: string, account_id: string, until: number): Promise<number> {
    const permit = await semaphore.acquire(
      { account_id, bytes: 0 },
      { waitMs: Math.max(0, until - performance.now()), signal: closing.signal },
    );
    try {
      return await thread.count(slice);
    } finally {
      permit.release();
    }
  }

  return {
    longestToken: LONGEST_TOKEN,
    async count(texts, accountId, atMost = Infinity) {
      let tokens = 0;
      const until = performance.now() + LIMITS.run.countMs;
      for (const text of texts)
        if (fitsAtOnce(text.length)) tokens += (await (loading ??= loadTokenizer()))(text);
        else
          for (const slice of slicesOf(text)) {
            if (tokens > atMost) return tokens;
            tokens += await countSlice(slice, accountId, until);
          }
      return tokens;
    },
    async [Symbol.asyncDispose]() {
      closing.abort(new Error('The tokenizer is closed.'));
      await thread.close();
    },
  };
}
