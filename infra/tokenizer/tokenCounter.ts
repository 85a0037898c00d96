import { setImmediate as yieldToOthers } from 'node:timers/promises';
import type { TokenCounter } from '../../shared/ports/tokenCounter.ts';

/**
 * The tokenizer's time grows with the square of an unbroken run of letters: longer ones are counted
 * in parts.
 */
const LONGEST_RUN = 256;
const LONG_RUN = new RegExp(`\\S{${LONGEST_RUN},}|\\s{${LONGEST_RUN},}`, 'gu');
const PART_OF_RUN = new RegExp(`[^]{1,${LONGEST_RUN}}`, 'gu');
/**
 * UTF-16 units between two turns of the event loop: about 10 ms of text that the tokenizer has
 * never seen.
 */
const SLICE = 8_192;
/**
 * Words whose tokens are remembered; the library's own default is 100,000, which grows to hundreds
 * of megabytes.
 */
const REMEMBERED_WORDS = 5_000;
/** Names of special tokens in a text are text. */
const PLAIN_TEXT = { disallowedSpecial: new Set<string>() };

type Count = (text: string) => number;

async function load(): Promise<Count> {
  const { default: encoding } = await import('gpt-tokenizer/encoding/o200k_base');
  encoding.setMergeCacheSize(REMEMBERED_WORDS);
  return (text) => encoding.countTokens(text, PLAIN_TEXT);
}

/**
 * Cuts where a space, which belongs to the word after it, begins a new word; in the middle of a run
 * when there is none, never inside a pair.
 */
function endOfSlice(text: string, start: number): number {
  if (text.length - start <= SLICE) return text.length;
  const space = text.lastIndexOf(' ', start + SLICE);
  const end = space > start ? space : start + SLICE;
  const unit = text.charCodeAt(end);
  return unit >= 0xdc00 && unit <= 0xdfff ? end - 1 : end;
}

function countSlice(count: Count, slice: string): number {
  let tokens = 0;
  let done = 0;
  for (const { 0: run, index } of slice.matchAll(LONG_RUN)) {
    tokens += count(slice.slice(done, index));
    for (const [part] of run.matchAll(PART_OF_RUN)) tokens += count(part);
    done = index + run.length;
  }
  return tokens + count(slice.slice(done));
}

/**
 * Counts in the o200k_base encoding of OpenAI's current models. Exact for ordinary text; a run of
 * more than 256 letters or spaces without a break may count a token too many per 256. The tables
 * (some 20 MB) are loaded when the first text is counted.
 */
export function createTokenCounter(): TokenCounter {
  let loading: Promise<Count> | undefined;
  return {
    async count(text) {
      const count = await (loading ??= load());
      let tokens = 0;
      for (let start = 0; start < text.length;) {
        if (start > 0) await yieldToOthers();
        const end = endOfSlice(text, start);
        tokens += countSlice(count, text.slice(start, end));
        start = end;
      }
      return tokens;
    },
  };
}
