import type { Clock } from '../../../shared/ports/clock.ts';
import type { ParkedKeys } from '../../../shared/publicEvents/publisher.ts';
import type { RelayHealth } from '../../../shared/health/health.ts';
import { createLogEndEstimate } from '../../../shared/eventlog/identity/endOfLog.ts';
import { createLagTracker } from '../../../shared/eventlog/identity/lag.ts';
import { resolvesWithin } from '../../../shared/lib/time/resolvesWithin.ts';
import type { Relay } from './relay.ts';
import { runRelay } from './run.ts';

/** How long an open transaction may take to finish on close. */
const CLOSE_LIMIT_MS = 3_000;

export interface RunningRelay {
  /** Resolves within 100 ms, even while the store does not respond. */
  health(): Promise<RelayHealth>;
  /** Lets the open transaction finish, within limits, and closes the publisher. */
  close(): Promise<void>;
}

/**
 * Starts the relay in the background. Failures are logged, shown by `health`, and retried
 * indefinitely.
 */
export function startRelay({
  clock,
  ...options
}: Omit<Relay, 'lag' | 'endOfLog' | 'signal' | 'onState' | 'onParked'> & {
  clock: Clock;
}): RunningRelay {
  const closing = new AbortController();
  const lag = createLagTracker(clock);
  const endOfLog = createLogEndEstimate(options.log);
  let state: Pick<RelayHealth, 'state' | 'reason'> = { state: 'starting' };
  const onState: Relay['onState'] = (next, reason) =>
    void (state = { state: next, ...(reason !== undefined && { reason }) });
  let parked: ParkedKeys = { count: 0, keys: [] };
  const onParked: Relay['onParked'] = (now) => void (parked = now);
  const run = runRelay({ ...options, lag, endOfLog, signal: closing.signal, onState, onParked });
  return {
    async health() {
      const current = {
        ...state,
        position: lag.position(),
        ...(parked.count > 0 && { parked }),
      };
      if (state.state === 'standing_by') return { ...current, lag_ms: null };
      return { ...current, lag_ms: lag.measure(await endOfLog.latest()).ms };
    },
    async close() {
      closing.abort();
      await resolvesWithin(run, CLOSE_LIMIT_MS);
      // Closes the connection of a transaction that has not ended; the broker aborts it.
      await resolvesWithin(options.publisher.close(), CLOSE_LIMIT_MS);
      await resolvesWithin(run, CLOSE_LIMIT_MS);
    },
  };
}
