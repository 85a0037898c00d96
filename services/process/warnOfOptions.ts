import type { Config } from '../../shared/lib/config/config.ts';
import { misspeltOptions } from '../../shared/lib/config/config.ts';
import { databaseInTheClear } from '../../shared/lib/config/plaintext.ts';
import type { Logger } from '../../shared/lib/logger.ts';

type Env = Readonly<Record<string, string | undefined>>;

/** Warns of ignored variables whose names resemble an option. */
export function warnOfMisspelledOptions(env: Env, logger: Pick<Logger, 'warn'>): void {
  for (const { variable, option } of misspeltOptions(env))
    logger.warn(
      { variable, option },
      `${variable} is not an option, and is ignored; did you mean ${option}?`,
    );
}

/** Warns of settings that are valid, but that an operator may not have intended. */
export function warnOfOptions(config: Config, env: Env, logger: Pick<Logger, 'warn'>): void {
  warnOfMisspelledOptions(env, logger);
  const warning = databaseInTheClear(config);
  if (warning !== undefined) logger.warn(warning);
}
