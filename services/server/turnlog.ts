import type { LeftOpenCloser } from '../../shared/commands/recovery/closeLeftOpen.ts';
import type { RunContext } from '../../shared/commands/run/context.ts';
import type { DamagedStreams } from '../../shared/eventlog/damagedStreams.ts';
import type { EventStore } from '../../shared/ports/eventStore.ts';
import type { ProjectionHealth } from '../../shared/queries/health.ts';
import type { RunningProjector } from '../projector/startProjector.ts';
import type { RunningRelay } from '../relay/startRelay.ts';

/** The parts of a process, wired together. What belongs to a service that is not among its own is undefined. */
export interface Turnlog {
  store: EventStore;
  /** What the API works with. */
  api: RunContext | undefined;
  /** A projector that shares its work with others; the one of a service in one process is part of its read models. */
  projector: RunningProjector | undefined;
  relay: RunningRelay | undefined;
  /** The folder that holds the log, absolute. */
  dataFolder: string | undefined;
  /** How the read models are, where this process works with them. Errors: `store_unavailable`. */
  projection: (() => Promise<ProjectionHealth>) | undefined;
  /**
   * Half a sentence on why the read models are being built anew; undefined where they can be trusted. Known at
   * once.
   */
  healing(): string | undefined;
  /** Waits until requests can be answered as if no process had ever ended. Errors: the signal's reason. */
  prepare(signal: AbortSignal): Promise<void>;
  /** The streams that this process found not to be whole; undefined where it reads none. */
  damaged: DamagedStreams | undefined;
  /** Closes the turns that this process had to leave open; undefined where it runs none. */
  closer: LeftOpenCloser | undefined;
  /**
   * Closes turns of others that nobody runs any more. Meant to be called every few seconds.
   * Errors: `store_unavailable`.
   */
  sweep(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}
