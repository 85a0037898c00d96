import type { Clock } from '../../../shared/ports/clock.ts';
import type { EventLog, Position } from '../../../shared/ports/eventStore.ts';
import type { ActiveProjectionStore, ProjectorLag } from '../../../shared/ports/readModels.ts';
import type { ProjectorHealth } from '../../../shared/health/health.ts';
import type { Keyring } from '../../../shared/eventlog/encryption/keyring.ts';
import { createLagTracker, type LagTracker } from '../../../shared/eventlog/identity/lag.ts';
import type { HealingOptions } from './heal.ts';
import { projectWhenActive } from './projectWhenActive.ts';
import type { ProjectorState } from './serveAsActive.ts';
import { createProjectorStatus, searchReason } from './status.ts';
import type { ProjectorLogger } from './projection.ts';

interface RunningProjector {
  health(): ProjectorHealth;
  /** One sentence on why the read models are being rebuilt; undefined while they aren't. */
  healing(): string | undefined;
  /** Finishes the current batch, and lets another projector take over at once. */
  close(): Promise<void>;
}

interface ProjectorOptions extends Pick<HealingOptions, 'openRebuild'> {
  log: Pick<EventLog, 'head' | 'subscribe'>;
  acquireLeadership: (signal: AbortSignal) => Promise<ActiveProjectionStore | undefined>;
  clock: Clock;
  logger: ProjectorLogger;
  /** Decrypts the texts to index; without it no turn is indexed. */
  keys?: Keyring;
}

/** Starts a projector in the background, active or standing by. Failures are logged and retried. */
export function startProjector({
  log,
  acquireLeadership,
  openRebuild,
  clock,
  logger,
  keys,
}: ProjectorOptions): RunningProjector {
  const closing = new AbortController();
  const status = createProjectorStatus(logger);
  let state: ProjectorState = 'standing_by';
  let lag: LagTracker | undefined;
  /** False until this projector, as the active one, has applied a batch. */
  let isKnown = false;
  let end: Position | undefined;
  const currentLag = (): ProjectorLag | undefined =>
    isKnown && status.healing() === undefined ? lag?.measure(end) : undefined;
  const run = projectWhenActive({
    log,
    logger,
    keys,
    acquireLeadership,
    openRebuild,
    signal: closing.signal,
    onState(next) {
      state = next;
      status.record({ type: 'healing', reason: undefined });
      lag = createLagTracker(clock);
      isKnown = false;
    },
    lag: { startBatch: (batch) => lag?.startBatch(batch), finishBatch: () => lag?.finishBatch() },
    onProgress(batch) {
      isKnown = true;
      status.onProgress(batch);
    },
    report: status.record,
    onEnd: (position) => void (end = position),
    currentLag,
    onHealingProgress: status.onHealingProgress,
  });
  return {
    health() {
      const { events: lag_events = null, ms: lag_ms = null } = currentLag() ?? {};
      const search_reason = searchReason(status.notIndexed());
      return { state, lag_events, lag_ms, ...(search_reason !== undefined && { search_reason }) };
    },
    healing: status.healing,
    async close() {
      closing.abort();
      await run;
    },
  };
}
