import type { Clock } from '../../../shared/ports/clock.ts';
import type { ParkedKeys } from '../../../shared/publicEvents/publisher.ts';
import type { RelayHealth } from '../../../shared/health/health.ts';
import { createLogEndEstimate } from '../../../shared/eventlog/identity/endOfLog.ts';
import { createLagTracker } from '../../../shared/eventlog/identity/lag.ts';
import { resolvesWithin } from '../../../shared/lib/time/resolvesWithin.ts';
import type { Relay } from './relay.ts';
import { runRelay } from './run.ts';

/** How long a transaction at work may take to finish at the end. */
const CLOSE_LIMIT_MS = 3_000;

export interface RunningRelay {
  /** Answers within 100 ms from what is known, whatever the store does. */
  health(): Promise<RelayHealth>;
  /** Lets the transaction at work finish, within limits, and lets go of the publisher. */
  close(): Promise<void>;
}

/**
 * Starts relaying in the background. It needs nobody's care: failures are logged, shown by
 * `health`, and tried again for ever.
 */
export function startRelay({
  clock,
  ...parts
}: Omit<Relay, 'lag' | 'endOfLog' | 'signal' | 'onState' | 'onParked'> & {
  clock: Clock;
}): RunningRelay {
  const closing = new AbortController();
  const lag = createLagTracker(clock);
  const endOfLog = createLogEndEstimate(parts.log);
  let state: Pick<RelayHealth, 'state' | 'reason'> = { state: 'starting' };
  const onState: Relay['onState'] = (next, reason) =>
    void (state = { state: next, ...(reason !== undefined && { reason }) });
  let parked: ParkedKeys = { count: 0, keys: [] };
  const onParked: Relay['onParked'] = (now) => void (parked = now);
  const run = runRelay({ ...parts, lag, endOfLog, signal: closing.signal, onState, onParked });
  return {
    async health() {
      const known = {
        ...state,
        position: lag.position(),
        ...(parked.count > 0 && { parked }),
      };
      if (state.state === 'standing_by') return { ...known, lag_ms: null };
      return { ...known, lag_ms: lag.measure(await endOfLog.latest()).ms };
    },
    async close() {
      closing.abort();
      await resolvesWithin(run, CLOSE_LIMIT_MS);
      // Cuts the connection of a transaction that has not ended; the broker aborts it.
      await parts.publisher.close();
      await resolvesWithin(run, CLOSE_LIMIT_MS);
    },
  };
}
