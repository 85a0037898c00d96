import type { RunContext } from '../shared/commands/run/context.ts';
import type { Health } from '../shared/queries/health.ts';
import type { Availability } from './api/context.ts';

const REASONS: Readonly<Record<Exclude<Availability, 'up'>, string>> = {
  starting: 'The service is starting; its read models are being brought up to date.',
  stopping: 'The service is shutting down.',
};

/** Asks the parts whether requests can be served. */
export async function checkHealth({ readModels, inFlight }: RunContext, availability: Availability, caughtUp: boolean): Promise<Health> {
  const runs_in_flight = inFlight.count();
  if (availability !== 'up') return { ready: false, reason: REASONS[availability], projection: { caught_up: caughtUp, parked_streams: [] }, runs_in_flight };
  return { ready: true, projection: { caught_up: caughtUp, parked_streams: await readModels.listParkedStreams() }, runs_in_flight };
}
