import { addAbortListener } from 'node:events';
import type { Position } from '../ports/eventStore.ts';

/** How far a projection is. */
export interface Progress {
  /** The checkpoint: all events up to here are in the rows. Undefined while the log is empty. */
  position: Position | undefined;
  /** True when, at the moment of reading, no later event existed. */
  caughtUp: boolean;
  /** 0 to 100; an estimate that is good enough for people. */
  percent: number;
  /** True where nothing but events of sessions was applied since the progress before. */
  onlySessions: boolean;
}

/** How far the read models of one generation are. */
export interface ProjectionProgress extends Progress {
  /** Which generation of the read models holds this; a rebuild makes the next one. */
  generation: number;
  /**
   * True when it takes the place of a generation that can't be trusted: what that one has shown
   * does not bind it.
   */
  heals?: boolean;
}

/** Calls the listener with every progress, first with the latest. Returns what ends it. */
export interface ProgressSource {
  subscribe(listener: (progress: ProjectionProgress) => void): () => void;
}

interface ProgressChannel extends ProgressSource {
  publish(progress: ProjectionProgress): void;
}

/** Hands progress from whoever runs the projection to the read models of the same thread. */
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
 * Where a position lies between the beginning and the end of the log, in percent. Positions are
 * opaque text that sorts; those of every adapter are zero-padded numbers at their beginning, which
 * is all that this estimate uses.
 */
export function percentOf(position: Position | undefined, end: Position | undefined): number {
  if (end === undefined || (position !== undefined && position >= end)) return 100;
  const [done, total] = [Number.parseInt(position ?? '0', 10), Number.parseInt(end, 10)];
  return total > 0 && done >= 0 ? Math.min(100, (100 * done) / total) : 0;
}

/** Resolves once the projection has caught up. Throws the abort reason. */
export async function untilCaughtUp(progress: ProgressSource, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  using listening = new DisposableStack();
  listening.use(addAbortListener(signal, () => reject(signal.reason as Error)));
  listening.defer(progress.subscribe(({ caughtUp }) => caughtUp && resolve()));
  await promise;
}
