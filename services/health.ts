import type { EventStore } from '../shared/ports/eventStore.ts';
import type { Health } from '../shared/queries/health.ts';
import type { Availability } from './api/context.ts';
import { settlesWithin } from './settlesWithin.ts';
import type { Turnlog } from './turnlog.ts';

const REASONS: Readonly<Record<Exclude<Availability, 'up'>, string>> = {
  starting: 'The service is starting; its read models are being brought up to date.',
  stopping: 'The service is shutting down.',
};

const STORE_LIMIT_MS = 1_000;

/** Whether the event store answers in time. */
const storeAnswers = (store: EventStore): Promise<boolean> => settlesWithin(store.head(), STORE_LIMIT_MS).catch(() => false);

/** Asks the parts whether they can do their work. Errors: `store_unavailable`. */
export async function checkHealth({ store, api, damaged, projection, projector, relay }: Turnlog, availability: Availability): Promise<Health> {
  const runs = api && { runs_in_flight: api.inFlight.count() };
  if (availability !== 'up') return { ready: false, reason: REASONS[availability], ...runs };
  const readModels = projection && { projection: await projection() };
  if (!(await storeAnswers(store))) return { ready: false, reason: 'The event store does not answer.', ...readModels, ...runs };
  return { ready: true, ...readModels, ...runs, damaged_streams: damaged?.list() ?? [], ...(projector && { projector: await projector.health() }), ...(relay && { relay: await relay.health() }) };
}
