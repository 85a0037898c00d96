/**
 * The tokenizer's time grows with the square of an unbroken run of letters, so longer runs are
 * counted in parts.
 */
const LONGEST_RUN = 256;
const LONG_RUN = new RegExp(`\\S{${LONGEST_RUN},}|\\s{${LONGEST_RUN},}`, 'gu');
const PART_OF_RUN = new RegExp(`[^]{1,${LONGEST_RUN}}`, 'gu');
/**
 * The number of words whose tokens are cached. The library's default of 100,000 grows to hundreds
 * of megabytes.
 */
const REMEMBERED_WORDS = 5_000;
/** Counts the names of special tokens as ordinary text. */
const PLAIN_TEXT = { disallowedSpecial: new Set<string>() };

/** The UTF-16 units of a slice: about 10 ms of text that the tokenizer has never seen. */
const SLICE = 8_192;

/** The length of the longest token of o200k_base, a run of spaces. */
export const LONGEST_TOKEN = 128;

type Count = (text: string) => number;

/**
 * Ends a slice before a space, which belongs to the next word. Without a space, the slice ends
 * within a run, but never within a surrogate pair.
 */
function endOfSlice(text: string, start: number): number {
  if (text.length - start <= SLICE) return text.length;
  const space = text.lastIndexOf(' ', start + SLICE);
  const end = space > start ? space : start + SLICE;
  const unit = text.charCodeAt(end);
  return unit >= 0xdc00 && unit <= 0xdfff ? end - 1 : end;
}

/** Splits a text into parts whose tokens add up to those of the text. */
function* partsOf(text: string): Generator<string> {
  for (let start = 0; start < text.length;) {
    const end = endOfSlice(text, start);
    yield text.slice(start, end);
    start = end;
  }
}

/**
 * Splits texts into slices that take a bounded time each: short texts are counted together, long
 * ones in parts. The tokens of all slices add up to those of the texts.
 */
export function* slicesOf(texts: readonly string[]): Generator<string[]> {
  let slice: string[] = [];
  let length = 0;
  for (const text of texts)
    for (const part of partsOf(text)) {
      if (length + part.length > SLICE) {
        yield slice;
        [slice, length] = [[], 0];
      }
      slice.push(part);
      length += part.length;
    }
  if (slice.length > 0) yield slice;
}

/** Loads the tables of o200k_base (about 20 MB). Resolves with a function that counts one part. */
export async function loadTokenizer(): Promise<Count> {
  const { default: encoding } = await import('gpt-tokenizer/encoding/o200k_base');
  encoding.setMergeCacheSize(REMEMBERED_WORDS);
  const count: Count = (text) => encoding.countTokens(text, PLAIN_TEXT);
  return (slice) => {
    let tokens = 0;
    let countedUntil = 0;
    for (const { 0: run, index } of slice.matchAll(LONG_RUN)) {
      tokens += count(slice.slice(countedUntil, index));
      for (const [part] of run.matchAll(PART_OF_RUN)) tokens += count(part);
      countedUntil = index + run.length;
    }
    return tokens + count(slice.slice(countedUntil));
  };
}
