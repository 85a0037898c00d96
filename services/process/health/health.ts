import type { Health } from '../../../shared/health/health.ts';
import type { Availability } from '../../api/context.ts';
import type { ProcessPart, ProcessParts } from '../processParts.ts';

const REASONS: Readonly<Record<Exclude<Availability, 'up'>, string>> = {
  starting: 'The service is starting; its read models are being brought up to date.',
  draining:
    'The service is about to shut down, and serves requests until load balancers have noticed.',
  stopping: 'The service is shutting down.',
};

/** The first reason that a part reports; undefined when no part reports one. */
export const firstReason = <Kind extends 'trouble' | 'distrustReason'>(
  parts: readonly Pick<ProcessPart, Kind>[],
  kind: Kind,
): string | undefined => parts.map((part) => part[kind]?.()).find((reason) => reason !== undefined);

/** Why the start waits, if known. */
function startupReason(parts: readonly ProcessPart[]): string | undefined {
  const reason = firstReason(parts, 'trouble') ?? firstReason(parts, 'distrustReason');
  return reason && `The service is starting and waits. ${reason}`;
}

/** Shares one check among concurrent callers, so that many probes cost as much as one. */
export function shareHealth(check: () => Promise<Health>): () => Promise<Health> {
  let checking: Promise<Health> | undefined;
  return () =>
    (checking ??= check().finally(() => {
      checking = undefined;
    }));
}

/** Collects the health of all parts. Rejects with `store_unavailable` when a part can't tell. */
export async function checkHealth(
  { parts }: Pick<ProcessParts, 'parts'>,
  availability: Availability,
): Promise<Health> {
  if (availability !== 'up') {
    const reason = availability === 'starting' ? startupReason(parts) : undefined;
    return { ready: false, reason: reason ?? REASONS[availability] };
  }
  // Checked first: parts that query an unavailable store would delay the answer.
  const trouble = firstReason(parts, 'trouble');
  if (trouble !== undefined) return { ready: false, reason: trouble };
  const reports = await Promise.all(parts.map(async (part) => part.health?.()));
  return Object.assign({ ready: true }, ...reports) as Health;
}
