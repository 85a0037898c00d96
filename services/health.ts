import type { Health } from '../shared/queries/health.ts';
import type { Availability } from './api/context.ts';
import type { Turnlog } from './turnlog.ts';

const REASONS: Readonly<Record<Exclude<Availability, 'up'>, string>> = {
  starting: 'The service is starting; its read models are being brought up to date.',
  stopping: 'The service is shutting down.',
};

/** Asks the parts whether they can do their work. Errors: `store_unavailable`. */
export async function checkHealth({ store, api, damaged, projection, projector, relay }: Turnlog, availability: Availability): Promise<Health> {
  const runs = api && { runs_in_flight: api.inFlight.count() };
  const trouble = store.trouble();
  if (availability === 'starting' && trouble !== undefined) return { ready: false, reason: `The service is starting and waits. ${trouble}`, ...runs };
  if (availability !== 'up') return { ready: false, reason: REASONS[availability], ...runs };
  const readModels = projection && { projection: await projection() };
  const damagedStreams = { damaged_streams: damaged?.list() ?? [] };
  if (trouble !== undefined) return { ready: false, reason: trouble, ...readModels, ...runs };
  return { ready: true, ...readModels, ...runs, ...damagedStreams, ...(projector && { projector: await projector.health() }), ...(relay && { relay: await relay.health() }) };
}
