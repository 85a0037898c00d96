import type { Logger } from '../../../shared/lib/logger.ts';
import { createBackoff } from '../../../shared/lib/time/backoff.ts';
import { sleep } from '../../../shared/lib/time/sleep.ts';
import type { Comparison } from '../../../shared/transparency/kept/compareTree.ts';
import type { ProcessPart } from '../processParts.ts';
import { retryUntilStoreAvailable } from './retryUntilStoreAvailable.ts';

const PAUSES = { firstMs: 1_000, longestMs: 10_000 };

/** The comparison of the transparency log with what others know of it, once for each start. */
export interface TreeCheck {
  /** The start waits until the comparison reveals nothing. */
  part: Required<Pick<ProcessPart, 'prepare' | 'trouble'>>;
  /** Why the log may not be continued, in a sentence; undefined if it may, or is not known yet. */
  refusal: () => string | undefined;
  /** Resolves when the comparison has revealed nothing. */
  passed: Promise<void>;
  /** The problem that an operator has to examine, in a sentence, although the log may be continued. */
  doubt: () => string | undefined;
}

const NO_RECORD =
  'the event log has events, no transparency log, and no record that it was ever signed: a new transparency log is begun. If it was signed before, stop the service, restore its transparency log and signing key, or declare another one: npm run cli -- audit declare-tree --reason <text>';

/**
 * Creates the check of a start. While the log was rolled back, rewritten, or lacks its transparency
 * log, the start waits, nothing is written and nothing is signed; the comparison is repeated after a
 * pause, from 1 s doubling to 10 s. An outside party that does not answer is only logged. A witness that
 * contradicts a log which enough others confirm is logged and becomes the doubt.
 */
export function createTreeCheck(
  compare: (signal: AbortSignal) => Promise<Comparison>,
  logger: Logger,
): TreeCheck {
  let refusal: string | undefined;
  let doubt: string | undefined;
  const passed = Promise.withResolvers<void>();

  function logFindings({ compared, troubles, outvoted, isNew }: Comparison): void {
    for (const { name, trouble } of troubles)
      logger.warn(
        { source: name, reason: trouble },
        'the transparency log was not compared with one of those that know it',
      );
    if (compared.length > 0)
      logger.info({ compared }, 'the transparency log fits what others know of it');
    if (isNew) doubt = NO_RECORD;
    else if (outvoted.length > 0)
      doubt = `enough witnesses confirm the transparency log, but others contradict it: ${outvoted.join(' ')}`;
    if (doubt !== undefined) logger.warn({}, doubt);
  }

  async function prepare(signal: AbortSignal): Promise<void> {
    const pauses = createBackoff(PAUSES);
    let logged: string | undefined;
    for (;;) {
      const comparison = await retryUntilStoreAvailable(() => compare(signal), logger, signal);
      ({ refusal } = comparison);
      if (refusal === undefined) {
        logFindings(comparison);
        return passed.resolve();
      }
      if (refusal !== logged) logger.error({}, `the start waits: ${refusal}`);
      logged = refusal;
      await sleep(pauses.next(), signal);
    }
  }

  return {
    part: { prepare, trouble: () => refusal },
    refusal: () => refusal,
    passed: passed.promise,
    doubt: () => doubt,
  };
}
