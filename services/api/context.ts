import type { RunContext } from '../../shared/commands/run/context.ts';
import type { Health } from '../../shared/queries/health.ts';

/** `starting` until the read models are up to date and what a crash left open is closed; `stopping` from the signal on. */
export type Availability = 'starting' | 'up' | 'stopping';

/** What the API works with. */
export interface ApiContext extends RunContext {
  availability: () => Availability;
  health: () => Promise<Health>;
}
