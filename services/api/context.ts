import type { RunContext } from '../../shared/commands/run/context.ts';
import type { Health } from '../../shared/queries/health.ts';

/** What the API works with; wire.ts makes it. */
export interface ApiContext extends RunContext {
  health: () => Promise<Health>;
  /** True from the moment that a shut-down began. */
  isShuttingDown: () => boolean;
}
