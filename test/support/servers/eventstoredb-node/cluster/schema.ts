/**
 * What a node of a cluster keeps beside its records: its term and whom it voted for in it, and
 * where what is committed ends. `committed` shows the records before that.
 */
export const REPLICATION_SCHEMA = `
  CREATE TABLE IF NOT EXISTS replication (
    only INTEGER PRIMARY KEY CHECK (only = 1), term INTEGER NOT NULL, vote INTEGER, committed INTEGER NOT NULL);
  INSERT OR IGNORE INTO replication VALUES (1, 0, NULL, 0);
  CREATE VIEW IF NOT EXISTS committed AS SELECT * FROM records WHERE position < (SELECT committed FROM replication);
`;
