import type { Config } from '../../shared/lib/config/config.ts';
import { misspeltOptions } from '../../shared/lib/config/config.ts';
import { databaseInTheClear } from '../../shared/lib/config/plaintext.ts';
import type { Logger } from '../../shared/lib/logger.ts';

type Env = Readonly<Record<string, string | undefined>>;

/** Warns of variables that are ignored, and may be meant for an option. */
export function warnOfMisspelledOptions(env: Env, logger: Pick<Logger, 'warn'>): void {
  for (const { variable, option } of misspeltOptions(env))
    logger.warn(
      { variable, option },
      `${variable} is not an option, and is ignored; did you mean ${option}?`,
    );
}

/** Warns of what a start takes, and an operator may not have meant. */
export function warnOfOptions(config: Config, env: Env, logger: Pick<Logger, 'warn'>): void {
  warnOfMisspelledOptions(env, logger);
  const clear = databaseInTheClear(config);
  if (clear !== undefined) logger.warn(clear);
}
