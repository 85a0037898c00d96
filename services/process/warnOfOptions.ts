import { getHeapStatistics } from 'node:v8';
import type { Config } from '../../shared/lib/config/config.ts';
import { ConfigSchema, misspeltOptions } from '../../shared/lib/config/config.ts';
import { databaseInTheClear } from '../../shared/lib/config/plaintext.ts';
import type { Logger } from '../../shared/lib/logger.ts';

/** The part of the heap that prompts may take before a start warns. */
const MOST_FOR_PROMPTS = 1 / 4;

type Env = Readonly<Record<string, string | undefined>>;

/** Warns of ignored variables whose names resemble an option. */
export function warnOfMisspelledOptions(env: Env, logger: Pick<Logger, 'warn'>): void {
  for (const { variable, option } of misspeltOptions(env))
    logger.warn(
      { variable, option },
      `${variable} is not an option, and is ignored; did you mean ${option}?`,
    );
}

/** Options that have no effect without another option, or beside it. */
const WITHOUT_EFFECT = [
  { options: /^METRICS_HOST$/, when: 'without', other: 'METRICS_PORT' },
  // KAFKA_EVENT_SOURCE also names the source of the events of the feed and of webhooks.
  { options: /^KAFKA_(?!EVENT_SOURCE$)/, when: 'without', other: 'KAFKA_BROKERS' },
  { options: /^KEYS_DIR$/, when: 'with', other: 'DATABASE_URL' },
] as const;

function warnOfOptionsWithoutEffect(env: Env, logger: Pick<Logger, 'warn'>): void {
  const given = Object.keys(ConfigSchema.properties).filter((option) => env[option]);
  for (const { options, when, other } of WITHOUT_EFFECT) {
    if (given.includes(other) !== (when === 'with')) continue;
    for (const option of given.filter((name) => options.test(name)))
      logger.warn({ option }, `${option} is ignored ${when} ${other}`);
  }
}

/** Warns of settings that are valid, but that an operator may not have intended. */
export function warnOfOptions(config: Config, env: Env, logger: Pick<Logger, 'warn'>): void {
  warnOfMisspelledOptions(env, logger);
  warnOfOptionsWithoutEffect(env, logger);
  const warning = databaseInTheClear(config);
  if (warning !== undefined) logger.warn(warning);
  const heapBytes = getHeapStatistics().heap_size_limit;
  const { MAX_PROMPT_BYTES = 0 } = config;
  if (MAX_PROMPT_BYTES > heapBytes * MOST_FOR_PROMPTS)
    logger.warn(
      { MAX_PROMPT_BYTES, heap_bytes: heapBytes },
      'MAX_PROMPT_BYTES is more than a quarter of the heap: long prompts can end the process. Lower it, or raise the heap limit (NODE_OPTIONS=--max-old-space-size)',
    );
}
