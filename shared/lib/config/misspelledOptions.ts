import { isTypoOf } from '../validation/typos.ts';

/** An unknown environment variable and the option that is probably meant. */
export interface Misspelt {
  variable: string;
  option: string;
}

/**
 * One mistake is allowed per this many letters of an option. Short names such as HOST and PORT are
 * too generic for typo detection.
 */
const LETTERS_PER_MISTAKE = 6;

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
  return Object.keys(env)
    .filter((variable) => env[variable] && !options.includes(variable))
    .flatMap((variable) => {
      const normalized = variable
        .toUpperCase()
        .replaceAll('-', '_')
        .replace(/^TURNLOG_/, '');
      const option = unset.find((name) => isTypoOf(normalized, name, LETTERS_PER_MISTAKE));
      return option === undefined ? [] : [{ variable, option }];
    });
}
