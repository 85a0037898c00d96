import { nextOfText } from '../../sessions/turns/turnOutputPosition.ts';

/** A text that grows, and is read while it does, by any number of readers. */
export interface LiveText {
  add(piece: string): void;
  length(): number;
  /** The next part from there on, which parts no character, and how much there is behind it. */
  next(from: number): { text: string; chars: number } | undefined;
}

/**
 * Pieces are put together up to this size: a list of millions would be no smaller than the text, and
 * what was put together is copied when it is read.
 */
const CHUNK_CHARS = 256;
/** What is read at a time, where there is more. */
const READ_CHARS = 8_192;

/**
 * Keeps a text in pieces, so that adding to it costs what is added, and reading on what is read. What
 * is added parts no character.
 */
export function createLiveText(): LiveText {
  const chunks: { start: number; text: string }[] = [];
  let length = 0;

  /** The piece that has the character at `from`. */
  function chunkAt(from: number): number {
    let [low, high] = [0, chunks.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (chunks[middle]!.start <= from) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  return {
    add(piece) {
      const last = chunks.at(-1);
      if (last && last.text.length + piece.length <= CHUNK_CHARS) last.text += piece;
      else chunks.push({ start: length, text: piece });
      length += piece.length;
    },
    length: () => length,
    next(from) {
      if (from >= length) return undefined;
      const first = chunkAt(from);
      const { start } = chunks[first]!;
      let text = '';
      for (let at = first; at < chunks.length && text.length < READ_CHARS; at += 1)
        text += chunks[at]!.text;
      const part = nextOfText(text, from - start);
      return { text: part.text, chars: start + part.chars };
    },
  };
}
