import type { LogEndEstimate } from '../../../shared/eventlog/identity/endOfLog.ts';
import type { LagTracker } from '../../../shared/eventlog/identity/lag.ts';
import type { IdentifiableLog } from '../../../shared/eventlog/identity/logIdentity.ts';
import type { EventLog, Position } from '../../../shared/ports/eventStore.ts';
import type { ParkedKeys, Publisher } from '../../../shared/publicEvents/publisher.ts';
import type { RelayHealth } from '../../../shared/health/health.ts';

/** What the relay needs of a logger; pino's fits. */
type RelayLogger = Record<'info' | 'warn', (fields: object, message: string) => void>;

export interface Relay {
  log: IdentifiableLog & Pick<EventLog, 'subscribe'>;
  publisher: Publisher;
  /** Where to begin when there is no checkpoint: after this position, else at the first event. */
  startAfter: Position | undefined;
  /** An operator has said where to begin, so what is missing before it is known. */
  startIsStated: boolean;
  /** How long another relay must not have got on before this one takes over from it. */
  takeOverMs: number;
  lag: LagTracker;
  endOfLog: LogEndEstimate;
  signal: AbortSignal;
  /** With the reason of `retrying`. */
  onState: (state: RelayHealth['state'], reason?: string) => void;
  /** What is parked, whenever that may have changed. */
  onParked: (parked: ParkedKeys) => void;
  logger: RelayLogger;
}
