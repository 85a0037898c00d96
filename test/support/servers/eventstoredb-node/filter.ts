import type { RecordHead } from './types.ts';

/** A server-side filter: by stream name or event type, by prefixes or a regular expression. */
export interface Filter {
  on: 'stream' | 'type';
  prefixes: readonly string[];
  regex: string;
  /** Records that a page looks at. */
  window: number;
  /** After how many considered records a checkpoint is due. */
  checkpointInterval: number;
}

/** Whether a record passes the filter. The expression wins when both are given, as on a server. */
export function filteredBy({ on, prefixes, regex }: Filter): (record: RecordHead) => boolean {
  const pattern = regex === '' ? undefined : new RegExp(regex);
  return (record) => {
    const subject = record[on];
    return pattern ? pattern.test(subject) : prefixes.some((prefix) => subject.startsWith(prefix));
  };
}
