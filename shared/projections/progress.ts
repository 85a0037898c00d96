import { addAbortListener } from 'node:events';
import type { Position } from '../ports/eventStore.ts';

/** The progress of a projection. */
export interface Progress {
  /** The checkpoint: the rows include every event up to here. Undefined while the log is empty. */
  position: Position | undefined;
  /** True when no later event existed at the time of reading. */
  caughtUp: boolean;
  /** 0 to 100. An estimate for display. */
  percent: number;
  /**
   * True when no API key and no agent of before was changed since the previous progress: only events of
   * sessions and requests, and new agents, were applied.
   */
  keepsKnownRows: boolean;
}

/** The progress of one generation of the read models. */
export interface ProjectionProgress extends Progress {
  /** The generation of the read models. Each rebuild creates the next one. */
  generation: number;
  /**
   * True when it replaces an untrusted generation, so that its position may be lower than the one
   * shown before.
   */
  heals?: boolean;
}

/**
 * Calls the listener with the latest and every later progress. Returns a function to unsubscribe.
 */
export interface ProgressSource {
  subscribe(listener: (progress: ProjectionProgress) => void): () => void;
  /** Requests progress without delay: a reader waits for it, or much has gathered. */
  request?: () => void;
  /** Requests that turns are indexed without delay: a search waits for them. */
  requestIndex?: () => void;
}

interface ProgressChannel extends ProgressSource {
  publish(progress: ProjectionProgress): void;
}

/** Passes progress from the projector to the read models in the same thread. */
export function createProgressChannel(): ProgressChannel {
  const listeners = new Set<(progress: ProjectionProgress) => void>();
  let latest: ProjectionProgress | undefined;
  return {
    publish(progress) {
      latest = progress;
      for (const listener of listeners) listener(progress);
    },
    subscribe(listener) {
      listeners.add(listener);
      if (latest) listener(latest);
      return () => listeners.delete(listener);
    },
  };
}

/**
 * Estimates how far a position is between the beginning and the end of the log, in percent.
 * Positions are opaque sortable text, but in every adapter they begin with a zero-padded number,
 * which is all that this estimate uses.
 */
export function percentOf(position: Position | undefined, end: Position | undefined): number {
  if (end === undefined || (position !== undefined && position >= end)) return 100;
  const [done, total] = [Number.parseInt(position ?? '0', 10), Number.parseInt(end, 10)];
  return total > 0 && done >= 0 ? Math.min(100, (100 * done) / total) : 0;
}

/** Resolves once the projection has caught up. Throws the abort reason. */
export async function waitUntilCaughtUp(
  progress: ProgressSource,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  using listening = new DisposableStack();
  listening.use(addAbortListener(signal, () => reject(signal.reason as Error)));
  listening.defer(progress.subscribe(({ caughtUp }) => caughtUp && resolve()));
  await promise;
}
