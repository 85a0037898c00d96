import type { LogEndEstimate } from '../../../shared/eventlog/identity/endOfLog.ts';
import type { LagTracker } from '../../../shared/eventlog/identity/lag.ts';
import type { IdentifiableLog } from '../../../shared/eventlog/identity/logIdentity.ts';
import type { EventLog, Position } from '../../../shared/ports/eventStore.ts';
import type { ParkedKeys, Publisher } from '../../../shared/publicEvents/publisher.ts';
import type { RelayHealth } from '../../../shared/health/health.ts';

/** The part of pino's logger that the relay uses. */
type RelayLogger = Record<'info' | 'warn', (fields: object, message: string) => void>;

export interface Relay {
  log: IdentifiableLog & Pick<EventLog, 'subscribe'>;
  publisher: Publisher;
  /** Without a checkpoint the relay begins after this position, or at the first event. */
  startAfter: Position | undefined;
  /** True when an operator has stated where to begin, and so accepts that earlier messages are missing. */
  startIsStated: boolean;
  /** How long the active relay must have made no progress before this one takes over. */
  takeOverMs: number;
  lag: LagTracker;
  endOfLog: LogEndEstimate;
  signal: AbortSignal;
  /** `reason` belongs to `retrying`. */
  onState: (state: RelayHealth['state'], reason?: string) => void;
  /** Called with the parked keys whenever they may have changed. */
  onParked: (parked: ParkedKeys) => void;
  logger: RelayLogger;
}
