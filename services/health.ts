import type { RunContext } from '../shared/commands/run/context.ts';
import type { Health } from '../shared/queries/health.ts';
import type { Availability } from './api/context.ts';
import { settlesWithin } from './settlesWithin.ts';
import type { Turnlog } from './wire.ts';

const REASONS: Readonly<Record<Exclude<Availability, 'up'>, string>> = {
  starting: 'The service is starting; its read models are being brought up to date.',
  stopping: 'The service is shutting down.',
};

const STORE_LIMIT_MS = 1_000;

/** Whether the event store answers in time. */
const storeAnswers = ({ store }: RunContext): Promise<boolean> => settlesWithin(store.head(), STORE_LIMIT_MS).catch(() => false);

/** Asks the parts whether requests can be served. */
export async function checkHealth({ context, projector, relay }: Turnlog, availability: Availability): Promise<Health> {
  const caughtUp = projector.caughtUp();
  const runs_in_flight = context.inFlight.count();
  if (availability !== 'up') return { ready: false, reason: REASONS[availability], projection: { caught_up: caughtUp, parked_streams: [] }, runs_in_flight };
  const projection = { caught_up: caughtUp, parked_streams: await context.readModels.listParkedStreams() };
  if (!(await storeAnswers(context))) return { ready: false, reason: 'The event store does not answer.', projection, runs_in_flight };
  return { ready: true, projection, runs_in_flight, ...(relay && { relay: await relay.health() }) };
}
