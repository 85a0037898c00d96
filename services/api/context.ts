import type { RunContext } from '../../shared/commands/run/context.ts';
import type { Health } from '../../shared/queries/health.ts';

/**
 * `starting` until the read models are up to date and what a crash left open is closed; `stopping`
 * from the signal on.
 */
export type Availability = 'starting' | 'up' | 'stopping';

/** What every process works with that answers over HTTP. */
export interface ProcessContext extends Pick<RunContext, 'ids' | 'logger'> {
  availability: () => Availability;
  /** Errors: `store_unavailable`. */
  health: () => Promise<Health>;
}

/** What the API works with. */
export type ApiContext = RunContext & ProcessContext;
