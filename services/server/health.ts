import type { Health } from '../../shared/queries/health.ts';
import type { Availability } from '../api/context.ts';
import type { Turnlog } from './turnlog.ts';

const REASONS: Readonly<Record<Exclude<Availability, 'up'>, string>> = {
  starting: 'The service is starting; its read models are being brought up to date.',
  stopping: 'The service is shutting down.',
};

/** Why a start takes its time, where more is known than that it does. */
function startReason({ store, healing }: Turnlog): string | undefined {
  const trouble = store.trouble();
  if (trouble !== undefined) return `The service is starting and waits. ${trouble}`;
  const broken = healing();
  return broken && `The service is starting; its read models are being built anew: ${broken}.`;
}

/** Asks the parts whether they can do their work. Errors: `store_unavailable`. */
export async function checkHealth(turnlog: Turnlog, availability: Availability): Promise<Health> {
  const { store, api, damaged, projection, projector, relay } = turnlog;
  const runs = api && { runs_in_flight: api.sessions.inFlight.count() };
  const reason = availability === 'starting' ? startReason(turnlog) : undefined;
  if (availability !== 'up')
    return { ready: false, reason: reason ?? REASONS[availability], ...runs };
  const readModels = projection && { projection: await projection() };
  const trouble = store.trouble();
  if (trouble !== undefined) return { ready: false, reason: trouble, ...readModels, ...runs };
  const parts = {
    ...(projector && { projector: await projector.health() }),
    ...(relay && { relay: await relay.health() }),
  };
  return { ready: true, ...readModels, ...runs, damaged_streams: damaged?.list() ?? [], ...parts };
}
