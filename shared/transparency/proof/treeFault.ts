/** The first difference between the event log and the transparency log. */
export interface TreeFault {
  /** 0-based index of the leaf, which is the index of its event in the log. */
  index: number;
  /**
   * - `event`: the event log has a different event here. `expected` is the hash in the leaf.
   * - `end`: the end of the event log is missing.
   * - `tile`: a file of the transparency log was changed.
   * - `checkpoint`: a checkpoint does not match, so both logs were changed at or before the index.
   */
  kind: 'event' | 'end' | 'tile' | 'checkpoint';
  reason: string;
  expected?: string;
}

/** The log is shorter than a checkpoint or the tiles. */
export const truncatedLogFault = (index: number, leaves: number, whose: string): TreeFault => ({
  index,
  kind: 'end',
  reason: `the log ends after ${index} events, and ${whose} ${leaves} leaves: all from index ${index} on was cut off`,
});

/** The checkpoint of `count` leaves does not match. */
export const wrongRootFault = (count: number): TreeFault => ({
  index: count - 1,
  kind: 'checkpoint',
  reason: `the checkpoint of ${count} leaves has another root: an event at or before index ${count - 1} was changed, dropped or added, and the transparency log made to fit`,
});
