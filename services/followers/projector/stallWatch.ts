import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { EventLog, Position } from '../../../shared/ports/eventStore.ts';
import type { ActiveProjectionStore } from '../../../shared/ports/readModels.ts';

/**
 * How long an active projector may do without: neither a batch applied, nor the word of the log
 * that there is none to apply.
 */
export const STALL_MS = 5_000;
/** How long one batch may be at work: a rebuild's switch alone may hold it up for 15 s. */
const BATCH_LIMIT_MS = 20_000;
const POLL_MS = 1_000;
/** After a longer pause between two looks this process itself was held up. */
const HELD_UP_MS = 3_000;

interface Watched {
  log: Pick<EventLog, 'subscribe' | 'head'>;
  store: ActiveProjectionStore;
  /** Called with each look, with the end of the log as far as it is known. */
  onPoll: (end: Position | undefined) => void;
  /** Called once, with half a sentence. */
  onStall: (why: string) => void;
}

export interface StallWatch extends Disposable {
  /** What the projector is to work with, so that the watch sees what it does. */
  log: Pick<EventLog, 'subscribe' | 'head'>;
  store: ActiveProjectionStore;
  /** Everything up to here is applied. */
  onApplied(position: Position | undefined): void;
  /** Whether batches are expected now, or only that the log answers: while it is rebuilt from. */
  expect(what: 'batches' | 'answers'): void;
}

/**
 * Watches whether an active projector gets on. A subscription that hangs without an error, a log
 * that can't be asked for its end, and batches that can't be applied all count as standing still; a
 * log that has nothing new, or that refuses the checkpoint, does not.
 */
export function watchForStalls({ log, store, onPoll, onStall }: Watched): StallWatch {
  let expected: 'batches' | 'answers' = 'batches';
  let reached: Position | undefined;
  let end: Position | undefined;
  let asking: Promise<void> | undefined;
  let applyingSince: number | undefined;
  let lookedAt = performance.now();
  let gotOnAt = lookedAt;
  let answeredAt = lookedAt;

  const getsOn = (): void => void (gotOnAt = performance.now());

  async function ask(): Promise<void> {
    try {
      end = await log.head();
      answeredAt = performance.now();
      if (expected === 'answers' || end === undefined || end <= (reached ?? '')) getsOn();
    } catch {
      // Whoever reads the log is told why it can't be read.
    } finally {
      asking = undefined;
    }
  }

  /** Half a sentence; undefined while it gets on. */
  function stall(now: number): string | undefined {
    if (applyingSince !== undefined)
      return now - applyingSince > BATCH_LIMIT_MS
        ? `a batch could not be applied for ${BATCH_LIMIT_MS / 1000} s`
        : undefined;
    if (now - gotOnAt <= STALL_MS) return undefined;
    const silent = now - answeredAt > STALL_MS;
    return silent
      ? `the log could not be read for ${STALL_MS / 1000} s`
      : `nothing was applied for ${STALL_MS / 1000} s, though the log goes on`;
  }

  function judge(): void {
    const why = stall(performance.now());
    if (why === undefined) return;
    clearInterval(looking);
    onStall(why);
  }

  function look(): void {
    const now = performance.now();
    if (now - lookedAt > HELD_UP_MS) getsOn();
    lookedAt = now;
    asking ??= ask();
    onPoll(end);
    // What came while this process was busy is read before the time counts as over.
    setImmediate(judge);
  }
  const looking = setInterval(look, POLL_MS).unref();
  look();

  return {
    log: {
      head: log.head,
      async *subscribe(options) {
        try {
          for await (const batch of log.subscribe(options)) {
            expected = 'batches';
            yield batch;
          }
        } catch (error) {
          // Its refusal is an answer; what follows from it is for others to find out.
          if (isTurnlogError(error) && !isTurnlogError(error, 'store_unavailable')) {
            expected = 'answers';
            getsOn();
          }
          throw error;
        }
      },
    },
    store: {
      ...store,
      async apply(events, checkpoint) {
        applyingSince = performance.now();
        try {
          return await store.apply(events, checkpoint);
        } finally {
          applyingSince = undefined;
        }
      },
    },
    onApplied(position) {
      reached = position ?? reached;
      getsOn();
    },
    expect(what) {
      expected = what;
      getsOn();
    },
    [Symbol.dispose]: () => clearInterval(looking),
  };
}
