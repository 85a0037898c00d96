/** A variable of the environment that is none of ours, and the option that it may be meant for. */
export interface Misspelt {
  variable: string;
  option: string;
}

/** A letter for each so many of the option's may be wrong: HOST and PORT are like too much else. */
const LETTERS_PER_MISTAKE = 6;
const MOST_MISTAKES = 2;

/** How many letters have to be left out, put in or exchanged to come from one to the other. */
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

function isLike(variable: string, option: string): boolean {
  const allowed = Math.min(MOST_MISTAKES, Math.floor(option.length / LETTERS_PER_MISTAKE));
  if (allowed === 0 || Math.abs(variable.length - option.length) > allowed) return false;
  return mistakesBetween(variable, option) <= allowed;
}

/**
 * Variables that are set and look like an option which is not: misspelt by a letter or two, in
 * small letters, or with TURNLOG_ before it. They are for a warning and no more: the environment is
 * not ours alone (`DATABASE_URI` may be another program's), and no start may fail by it.
 */
export function misspeltIn(
  env: Readonly<Record<string, string | undefined>>,
  options: readonly string[],
): Misspelt[] {
  const unset = options.filter((option) => !env[option]);
  return Object.keys(env)
    .filter((variable) => env[variable] && !options.includes(variable))
    .flatMap((variable) => {
      const plain = variable
        .toUpperCase()
        .replaceAll('-', '_')
        .replace(/^TURNLOG_/, '');
      const option = unset.find((name) => isLike(plain, name));
      return option === undefined ? [] : [{ variable, option }];
    });
}
