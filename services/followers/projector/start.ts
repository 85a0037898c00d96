import type { Clock } from '../../../shared/ports/clock.ts';
import type { EventLog, Position } from '../../../shared/ports/eventStore.ts';
import type { ActiveProjectionStore, ProjectorLag } from '../../../shared/ports/readModels.ts';
import type { ProjectorHealth } from '../../../shared/health/health.ts';
import type { Keyring } from '../../../shared/eventlog/encryption/keyring.ts';
import { createLag, type Lag } from '../../../shared/eventlog/identity/lag.ts';
import { searchReason } from './doubt.ts';
import type { Healing } from './heal.ts';
import { projectWhenActive } from './projectWhenActive.ts';
import type { ProjectorState } from './serveAsActive.ts';
import { logParked, progressLines } from './reports.ts';
import type { ProjectorLogger } from './projection.ts';

interface RunningProjector {
  /** What is known: it asks nobody. */
  health(): ProjectorHealth;
  /** One sentence on why it rebuilds the read models; undefined while it doesn't. */
  healing(): string | undefined;
  /** Lets the batch at work finish, and lets another projector take over at once. */
  close(): Promise<void>;
}

interface Parts extends Pick<Healing, 'openRebuild'> {
  log: Pick<EventLog, 'head' | 'subscribe'>;
  becomeActive: (signal: AbortSignal) => Promise<ActiveProjectionStore | undefined>;
  clock: Clock;
  logger: ProjectorLogger;
  /** Opens what is indexed; without it nothing is. */
  keys?: Keyring;
}

/**
 * Starts projecting, or standing by, in the background. It needs nobody's care: failures are logged
 * and tried again for ever.
 */
export function startProjector({
  log,
  becomeActive,
  openRebuild,
  clock,
  logger,
  keys,
}: Parts): RunningProjector {
  const closing = new AbortController();
  const logProgress = progressLines(logger);
  let state: ProjectorState = 'standing_by';
  let healing: string | undefined;
  let notIndexed: string | undefined;
  let lag: Lag | undefined;
  /** False until the active projector has told where it is. */
  let told = false;
  let end: Position | undefined;
  const behind = (): ProjectorLag | undefined =>
    told && healing === undefined ? lag?.behind(end) : undefined;
  const run = projectWhenActive({
    log,
    logger,
    keys,
    becomeActive,
    openRebuild,
    signal: closing.signal,
    onState(next) {
      state = next;
      healing = undefined;
      lag = createLag(clock);
      told = false;
    },
    lag: { reading: (batch) => lag?.reading(batch), done: () => lag?.done() },
    onProgress({ caughtUp, percent, parked }) {
      told = true;
      logParked(logger, parked);
      logProgress({ caughtUp, percent });
    },
    onIndexTrouble: (reason) => void (notIndexed = searchReason(reason)),
    onHealing: (reason) => void (healing = reason),
    onEnd: (now) => void (end = now),
    currentLag: behind,
    onHealingProgress: ({ percent }) => logProgress({ caughtUp: false, percent }),
  });
  return {
    health() {
      const known = behind();
      return {
        state,
        lag_events: known?.events ?? null,
        lag_ms: known?.ms ?? null,
        ...(notIndexed !== undefined && { search_reason: notIndexed }),
      };
    },
    healing: () => healing,
    async close() {
      closing.abort();
      await run;
    },
  };
}
