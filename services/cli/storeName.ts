import type { Environment } from '../../shared/lib/config/config.ts';
import { isCluster } from '../compose/existing.ts';
import { usageError } from './failure.ts';

const VARIABLE = /^env:(.*)$/;
/** No data folder is named so, but a store that is not spoken with is: kurrentdb://… */
const SCHEME = /^[a-z][\w+.-]*:\/\//i;

/**
 * The store that an argument names: a data folder, a connection string, or one in a variable of the
 * environment (`env:NAME`). A connection string with a password is taken from there alone, because
 * everybody on the machine can read the arguments of a process.
 * Errors: a usage error, without the password.
 */
export function storeNamed(text: string, option: 'from' | 'to', env: Environment): string {
  const [, variable] = VARIABLE.exec(text) ?? [];
  const named = variable === undefined ? text : env[variable];
  if (!named) throw usageError(`--${option} ${text} names no store: it is empty, or not set.`);
  if (!isCluster(named) && SCHEME.test(named))
    throw usageError(
      `--${option} names neither a data folder nor a cluster: a connection string begins with esdb:// or esdb+discover://.`,
    );
  if (variable === undefined && isCluster(named) && named.includes('@'))
    throw usageError(
      `--${option} must not hold a user and password, which everybody on this machine can read in the list of processes: set a variable to the connection string, and name it: --${option} env:${option.toUpperCase()}_URL`,
    );
  return named;
}
