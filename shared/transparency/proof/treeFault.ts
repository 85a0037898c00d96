/** Where the event log and the transparency log differ first. */
export interface TreeFault {
  /** Of the leaf: the place of its event among all of the log, from 0. */
  index: number;
  /**
   * What was changed: the event log there, which has another event than the leaf (`expected` is the
   * hash of that one); its end, which is missing; a file of the transparency log; or both, at or
   * before the index, since a checkpoint does not fit them.
   */
  kind: 'event' | 'end' | 'tile' | 'checkpoint';
  reason: string;
  expected?: string;
}

/** The log ends where another one, a checkpoint or the tiles, has more leaves. */
export const cutAt = (index: number, leaves: number, whose: string): TreeFault => ({
  index,
  kind: 'end',
  reason: `the log ends after ${index} events, and ${whose} ${leaves} leaves: all from index ${index} on was cut off`,
});

/** The checkpoint of so many leaves does not fit. */
export const wrongRoot = (count: number): TreeFault => ({
  index: count - 1,
  kind: 'checkpoint',
  reason: `the checkpoint of ${count} leaves has another root: an event at or before index ${count - 1} was changed, dropped or added, and the transparency log made to fit`,
});
