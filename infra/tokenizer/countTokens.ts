/**
 * The tokenizer's time grows with the square of an unbroken run of letters: longer ones are counted
 * in parts.
 */
const LONGEST_RUN = 256;
const LONG_RUN = new RegExp(`\\S{${LONGEST_RUN},}|\\s{${LONGEST_RUN},}`, 'gu');
const PART_OF_RUN = new RegExp(`[^]{1,${LONGEST_RUN}}`, 'gu');
/**
 * Words whose tokens are remembered; the library's own default is 100,000, which grows to hundreds
 * of megabytes.
 */
const REMEMBERED_WORDS = 5_000;
/** Names of special tokens in a text are text. */
const PLAIN_TEXT = { disallowedSpecial: new Set<string>() };

/** UTF-16 units of a slice: about 10 ms of text that the tokenizer has never seen. */
const SLICE = 8_192;

/** Of o200k_base: a run of spaces. */
export const LONGEST_TOKEN = 128;

export type Count = (text: string) => number;

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

/** The text in parts that take a bounded time each; their tokens add up to its own. */
export function* slicesOf(text: string): Generator<string> {
  for (let start = 0; start < text.length;) {
    const end = endOfSlice(text, start);
    yield text.slice(start, end);
    start = end;
  }
}

/** Loads the tables of o200k_base (some 20 MB). Resolves with what counts a slice. */
export async function loadTokenizer(): Promise<Count> {
  const { default: encoding } = await import('gpt-tokenizer/encoding/o200k_base');
  encoding.setMergeCacheSize(REMEMBERED_WORDS);
  const count: Count = (text) => encoding.countTokens(text, PLAIN_TEXT);
  return (slice) => {
    let tokens = 0;
    let done = 0;
    for (const { 0: run, index } of slice.matchAll(LONG_RUN)) {
      tokens += count(slice.slice(done, index));
      for (const [part] of run.matchAll(PART_OF_RUN)) tokens += count(part);
      done = index + run.length;
    }
    return tokens + count(slice.slice(done));
  };
}
