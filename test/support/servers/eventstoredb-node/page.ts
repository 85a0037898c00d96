import type { LogRecord, RecordHead, TfPosition } from './types.ts';

/** Records that a server reads at a time, and events that it lets wait for a live subscriber. */
export const PAGE = 32;

/** Where a subscription or a read takes its records from: `$all` or one stream. */
export interface Source {
  /** Records at a place or later, oldest first. */
  records: (from: TfPosition, limit: number) => LogRecord[];
  passes: (record: RecordHead) => boolean;
  placeOf: (record: LogRecord) => TfPosition;
  /** The place of what follows a record. */
  after: (record: LogRecord) => TfPosition;
  /** The place of the last record that there is. */
  last: () => TfPosition;
  /** Records to look at before a page ends, whether they pass or not. */
  window: number;
}

export interface Page {
  events: LogRecord[];
  considered: number;
  from: TfPosition;
  next: TfPosition;
  isEnd: boolean;
}

/** Before everything: `TFPos.HeadOfTf`. */
export const HEAD: TfPosition = { commit: -1n, prepare: -1n };

export const FIRST: TfPosition = { commit: 0n, prepare: 0n };

export const isBefore = (a: TfPosition, b: TfPosition): boolean =>
  a.commit < b.commit || (a.commit === b.commit && a.prepare < b.prepare);

/**
 * One page, read as a server's `AllReader` does: it ends with enough events, with its window, or
 * with the log.
 */
export function readPage(source: Source, from: TfPosition): Page {
  const page: Page = { events: [], considered: 0, from, next: from, isEnd: false };
  while (page.events.length < PAGE && page.considered < source.window) {
    const limit = Math.min(PAGE, source.window - page.considered);
    const records = source.records(page.next, limit);
    for (const record of records) {
      page.considered += 1;
      page.next = source.after(record);
      if (source.passes(record)) page.events.push(record);
      if (page.events.length === PAGE) return page;
    }
    if (records.length < limit && page.considered < source.window) page.isEnd = true;
    if (page.isEnd) break;
  }
  return page;
}

/** Lets everything else of the process have its turn: a scan of the log takes long. */
export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
