import { integer, table, text } from '../readModels/table.ts';

/** The value of `day` in the row with the sums of all days. */
export const ALL_DAYS = '';

/**
 * The storage use of each account in the log, per UTC day and in total. Counts contain no
 * text. They outlive every erasure, because the events do. Part of TABLES.
 */
export const STORAGE_TABLES = {
  storage: table({
    columns: {
      account_id: text,
      /** UTC date, `2026-11-20`, on which the events were recorded; or ALL_DAYS. */
      day: text,
      /** Events except those in `audits`. */
      events: integer,
      /** Their data and metadata, as stored. */
      bytes: integer,
      /** Events of the audit, which have a quota of their own. */
      audits: integer,
      /** The last event counted. Earlier ones are not counted again. */
      position: text,
    },
    key: ['account_id', 'day'],
    rewritten: true,
  }),
};
