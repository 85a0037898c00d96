import { FIRST, HEAD, PAGE, type Source } from './page.ts';
import type { LogRecord, TfPosition } from './types.ts';
import { consumerTooSlow } from './wireErrors.ts';

/** What happens in the log while a subscriber is live, numbered so that a gap shows. */
interface LiveItem {
  number: number;
  at: TfPosition;
  /** Absent in a checkpoint. */
  record?: LogRecord;
}

export interface LiveQueue {
  /**
   * The next item; waits for it. Rejects when the source fails, the call is over, or an item found
   * no room.
   */
  take: () => Promise<LiveItem>;
  close: () => void;
}

interface Options {
  onWrite: (listener: () => void) => () => void;
  signal: AbortSignal;
  /** Considered records between two checkpoints; none are made when undefined. */
  interval: number | undefined;
  /** Records considered before the first one here. */
  considered?: number;
  /**
   * What to do with an item when a page of them waits; the oldest makes room for it unless told
   * otherwise.
   */
  makesRoom?: (waiting: number) => 'by losing the oldest' | 'without a loss' | 'not';
}

/**
 * Takes up what is written after a place. Nothing is taken up any more once an item found no room.
 */
export function openLiveQueue(source: Source, from: TfPosition, options: Options): LiveQueue {
  const items: LiveItem[] = [];
  let cursor = from;
  let number = 0;
  let considered = options.considered ?? 0;
  let full = false;
  let failure: unknown;
  let wake = (): void => undefined;

  function push(at: TfPosition, record?: LogRecord): void {
    number += 1;
    // What comes after an item that was lost must not come before the error that tells of it.
    if (full) return;
    if (items.length >= PAGE) {
      const room = options.makesRoom?.(items.length) ?? 'by losing the oldest';
      if (room === 'not') {
        full = true;
        return;
      }
      if (room === 'by losing the oldest') items.shift();
    }
    items.push(record ? { number, at, record } : { number, at });
  }

  function takeUp(): void {
    let records: LogRecord[];
    do {
      records = source.records(cursor, PAGE);
      for (const record of records) {
        cursor = source.after(record);
        const at = source.placeOf(record);
        if (source.passes(record)) push(at, record);
        considered += 1;
        if (options.interval !== undefined && considered >= options.interval) {
          considered = 0;
          push(at);
        }
      }
    } while (records.length === PAGE);
  }

  const stop = options.onWrite(() => {
    try {
      takeUp();
    } catch (error) {
      failure = error;
    }
    wake();
  });
  const over = (): void => {
    stop();
    failure ??= new Error('the call is over');
    wake();
  };
  options.signal.addEventListener('abort', over, { once: true });
  if (options.signal.aborted) over();

  async function take(): Promise<LiveItem> {
    for (;;) {
      const item = items.shift();
      if (item) return item;
      if (failure !== undefined) throw failure;
      if (full) throw consumerTooSlow();
      await new Promise<void>((resolve) => (wake = resolve));
    }
  }

  return { take, close: over };
}

/** The place after the last record, from which all that comes later is new. */
export const endOf = (source: Source): TfPosition => {
  const last = source.last();
  return last.commit === HEAD.commit ? FIRST : { commit: last.commit, prepare: last.prepare + 1n };
};
