import type { Health } from '../../../shared/health/health.ts';
import type { Availability } from '../../api/context.ts';
import type { ProcessPart, ProcessParts } from '../processParts.ts';

type Parts = readonly ProcessPart[];

const REASONS: Readonly<Record<Exclude<Availability, 'up'>, string>> = {
  starting: 'The service is starting; its read models are being brought up to date.',
  draining:
    'The service is about to shut down, and serves requests until load balancers have noticed.',
  stopping: 'The service is shutting down.',
};

/** What the first part says that says anything. */
function firstOf(parts: Parts, what: 'trouble' | 'doubt'): string | undefined {
  for (const part of parts) {
    const said = part[what]?.();
    if (said !== undefined) return said;
  }
  return undefined;
}

/** Why a start takes its time, where more is known than that it does. */
function startReason(parts: Parts): string | undefined {
  const trouble = firstOf(parts, 'trouble');
  if (trouble !== undefined) return `The service is starting and waits. ${trouble}`;
  const doubt = firstOf(parts, 'doubt');
  return doubt && `The service is starting and waits. ${doubt}`;
}

/** Those who ask at the same time are told the same: a crowd of probes costs what one does. */
export function shareHealth(check: () => Promise<Health>): () => Promise<Health> {
  let checking: Promise<Health> | undefined;
  return () =>
    (checking ??= check().finally(() => {
      checking = undefined;
    }));
}

/** Asks the parts whether they can do their work. Errors: `store_unavailable`. */
export async function checkHealth(
  { parts }: Pick<ProcessParts, 'parts'>,
  availability: Availability,
): Promise<Health> {
  if (availability !== 'up') {
    const known = availability === 'starting' ? startReason(parts) : undefined;
    return { ready: false, reason: known ?? REASONS[availability] };
  }
  // Known at once: nobody waits for parts that a store in trouble keeps waiting.
  const trouble = firstOf(parts, 'trouble');
  if (trouble !== undefined) return { ready: false, reason: trouble };
  const told = await Promise.all(parts.map(async (part) => part.health?.()));
  return Object.assign({ ready: true }, ...told) as Health;
}
