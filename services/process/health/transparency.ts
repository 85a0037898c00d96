import type {
  TransparencyFinding,
  TransparencyFindings,
  TransparencyLogHealth,
} from '../../../shared/health/health.ts';
import { errorSummary } from '../../../shared/lib/errors/errorSummary.ts';
import type { Logger } from '../../../shared/lib/logger.ts';
import { startPolling } from '../upkeep/periodicTask.ts';
import type { ProcessPart } from '../processParts.ts';

interface OwnPart {
  health(): Promise<{ transparency_log: TransparencyLogHealth }>;
}

/** The part of a health that others must see; undefined without any. */
function findingOf({
  trouble,
  doubt,
  witnesses,
}: TransparencyLogHealth): TransparencyFinding | undefined {
  const isShort = witnesses?.reason !== undefined;
  if (trouble === undefined && doubt === undefined && !isShort) return undefined;
  return {
    ...(trouble !== undefined && { trouble }),
    ...(doubt !== undefined && { doubt }),
    ...(isShort && { witnesses }),
  };
}

/**
 * The health of the transparency log in one of several processes: only the one that signs knows of its
 * troubles, so each process reports what it finds, and shows what the others report.
 */
export function sharedTransparencyPart(
  own: OwnPart,
  findings: TransparencyFindings,
  logger: Pick<Logger, 'warn'>,
): ProcessPart {
  let others: TransparencyFinding = {};
  let isFailing = false;

  async function poll(): Promise<void> {
    const { transparency_log } = await own.health();
    try {
      const reported = await findings.exchange(findingOf(transparency_log));
      others = Object.assign({}, ...reported) as TransparencyFinding;
      isFailing = false;
    } catch (error) {
      if (!isFailing)
        logger.warn(
          errorSummary(error),
          'the health of the transparency log could not be shared with other processes',
        );
      isFailing = true;
    }
  }

  return {
    async health() {
      const { transparency_log } = await own.health();
      return { transparency_log: { ...others, ...transparency_log } };
    },
    upkeep() {
      const polling = startPolling(poll);
      return {
        async [Symbol.asyncDispose]() {
          await polling[Symbol.asyncDispose]();
          await findings.withdraw().catch(() => undefined);
        },
      };
    },
  };
}
