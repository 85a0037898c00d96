import { isCluster } from '../compose/existing.ts';
import { usageError } from './failure.ts';

const VARIABLE = /^env:(.*)$/;

/**
 * The store that an argument names: a data folder, a connection string, or one in a variable of the
 * environment (`env:NAME`). A connection string with a password is taken from there alone, because
 * everybody on the machine can read the arguments of a process.
 * Errors: a usage error, without the password.
 */
export function storeNamed(
  text: string,
  option: 'from' | 'to',
  env: Readonly<Record<string, string | undefined>> = process.env,
): string {
  const [, variable] = VARIABLE.exec(text) ?? [];
  if (variable !== undefined) {
    const named = env[variable];
    if (named) return named;
    throw usageError(`--${option} ${text} names a variable that is not set.`);
  }
  if (isCluster(text) && text.includes('@'))
    throw usageError(
      `--${option} must not hold a user and password, which everybody on this machine can read in the list of processes: set a variable to the connection string, and name it: --${option} env:${option.toUpperCase()}_URL`,
    );
  return text;
}
