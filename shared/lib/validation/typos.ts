const MOST_MISTAKES = 2;

/** The edit distance: how many letters must be removed, inserted or replaced. */
function mistakesBetween(one: string, other: string): number {
  let above = Array.from({ length: other.length + 1 }, (_, column) => column);
  for (let row = 1; row <= one.length; row += 1) {
    const line = [row];
    for (let column = 1; column <= other.length; column += 1) {
      const exchanged = above[column - 1]! + (one[row - 1] === other[column - 1] ? 0 : 1);
      line.push(Math.min(exchanged, above[column]! + 1, line[column - 1]! + 1));
    }
    above = line;
  }
  return above.at(-1)!;
}

/**
 * True if a text is the word with at most two wrong letters, and at most one per `lettersPerMistake`
 * letters of the word.
 */
export function isTypoOf(text: string, word: string, lettersPerMistake: number): boolean {
  const allowed = Math.min(MOST_MISTAKES, Math.floor(word.length / lettersPerMistake));
  if (allowed === 0 || Math.abs(text.length - word.length) > allowed) return false;
  return mistakesBetween(text, word) <= allowed;
}
