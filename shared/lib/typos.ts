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

/** An unknown environment variable and the option that is probably meant. */
export interface Misspelt {
  variable: string;
  option: string;
}

/**
 * One mistake is allowed per this many letters of an option. Short names such as HOST and PORT are
 * too generic for typo detection; only with the prefix are they recognized.
 */
const LETTERS_PER_OPTION_MISTAKE = 6;

const PREFIX = /^TURNLOG_/;
/** Kubernetes sets TURNLOG_PORT to such an address where a service has the name `turnlog`. */
const KUBERNETES_ADDRESS = /^tcp:\/\//;

/**
 * Finds variables that resemble an unset option: with one or two wrong letters, in lower case, or
 * with the prefix TURNLOG_. They only cause a warning, because other programs share the environment
 * (`DATABASE_URI` may belong to one) and must not prevent a start.
 */
export function misspeltIn(
  env: Readonly<Record<string, string | undefined>>,
  options: readonly string[],
): Misspelt[] {
  const unset = options.filter((option) => !env[option]);
  return Object.entries(env)
    .filter(([variable, value]) => value && !options.includes(variable))
    .flatMap(([variable, value]) => {
      const normalized = variable.toUpperCase().replaceAll('-', '_');
      const bare = normalized.replace(PREFIX, '');
      const isPrefixed = bare !== normalized;
      if (isPrefixed && KUBERNETES_ADDRESS.test(value!)) return [];
      const option = unset.find(
        (name) => (isPrefixed && bare === name) || isTypoOf(bare, name, LETTERS_PER_OPTION_MISTAKE),
      );
      return option === undefined ? [] : [{ variable, option }];
    });
}
