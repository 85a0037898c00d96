import type { NodeLog } from '../log.ts';
import {
  epochInformation,
  EPOCHS,
  FIRST_EVENT_POSITION,
  SCAVENGES_METADATA,
  scavengesMetadata,
} from '../systemEvents.ts';
import type { Epoch, LogEnd, Row } from './protocol.ts';

/** The newest epochs that a follower names; further apart are no two logs that were ever one. */
const NAMED_EPOCHS = 1000;
const BATCH_BYTES = 256n * 1024n;

function toEpoch(row: Row): Epoch {
  const json = Buffer.from(row['data'] as Uint8Array).toString();
  const { epochNumber } = JSON.parse(json) as { epochNumber: number };
  return { number: epochNumber, position: row['position'] as bigint };
}

export type Replica = ReturnType<typeof openReplica>;

/**
 * A node's log as replication sees it: what is written, committed or not, and where its epochs
 * begin.
 */
export function openReplica(log: NodeLog) {
  const statement = (sql: string) => {
    const prepared = log.database.prepare(sql);
    prepared.setReadBigInts(true);
    return prepared;
  };
  const selectState = statement('SELECT term, vote, committed FROM replication');
  const updateVote = statement('UPDATE replication SET term = ?, vote = ?');
  const updateCommitted = statement('UPDATE replication SET committed = ?');
  const selectLast = statement(
    'SELECT next FROM records WHERE position < ? ORDER BY position DESC LIMIT 1',
  );
  const selectAt = statement('SELECT id, next FROM records WHERE position = ?');
  const selectFrom = statement('SELECT * FROM records WHERE position >= ? ORDER BY position');
  const selectEpochs = statement(
    `SELECT position, data FROM records WHERE stream = '${EPOCHS}' AND position < ? ORDER BY revision DESC LIMIT ?`,
  );
  const insert = statement(
    `INSERT INTO records VALUES (${'?, '.repeat(selectFrom.columns().length - 1)}?)`,
  );
  const cut = statement('DELETE FROM records WHERE position >= ?');
  const state = selectState.get() as { term: bigint; vote: bigint | null; committed: bigint };
  let { committed } = state;

  const endBefore = (position: bigint): bigint =>
    (selectLast.get(position)?.['next'] as bigint | undefined) ?? FIRST_EVENT_POSITION;
  const end = (): bigint => endBefore(2n ** 63n - 1n);
  const epochsBefore = (position: bigint, limit: number): Epoch[] =>
    selectEpochs.all(position, limit).map(toEpoch);
  const epochAt = (position: bigint): number => epochsBefore(position, 1)[0]?.number ?? 0;

  function truncate(position: bigint): void {
    if (position < committed)
      throw new Error(`another record comes for ${position}, and ${committed} is committed`);
    cut.run(position);
  }

  /**
   * Takes over what is missing; what is there instead of it, and all that follows, goes. Returns
   * where the rows end.
   */
  function take(from: bigint, rows: readonly Row[]): bigint {
    let at = from;
    log.inTransaction(() => {
      for (const row of rows) {
        const there = selectAt.get(at);
        if (there?.['id'] !== row['id']) {
          if (there) truncate(at);
          insert.run(...Object.values(row));
        }
        at = row['next'] as bigint;
      }
    });
    return at;
  }

  return {
    term: Number(state.term),
    vote: state.vote === null ? undefined : Number(state.vote),
    saveVote: (term: number, vote: number | undefined) => void updateVote.run(term, vote ?? null),
    committed: () => committed,
    commit(to: bigint): void {
      if (to <= committed) return;
      committed = to;
      updateCommitted.run(to);
      log.wake();
    },
    end,
    epochAt,
    logEnd: (): LogEnd => ({ epoch: epochAt(end()), position: end() }),
    epochs: (): Epoch[] => epochsBefore(end(), NAMED_EPOCHS),
    perform: log.perform,
    /**
     * Begins an epoch at the end of the log, which may be its beginning. Returns where that is
     * written.
     */
    writeEpoch(epoch: number): bigint {
      const isFresh = end() === FIRST_EVENT_POSITION;
      log.append(EPOCHS, 'any', [epochInformation(epoch, end())]);
      if (isFresh) log.append(SCAVENGES_METADATA, 'any', [scavengesMetadata()]);
      return end();
    },
    /** The next whole writes, a batch at most unless a single one is larger. */
    batch(from: bigint): Row[] {
      const rows: Row[] = [];
      for (const row of selectFrom.iterate(from)) {
        rows.push(row);
        if ((row['next'] as bigint) - from >= BATCH_BYTES && row['ends_write'] === 1n) break;
      }
      return rows;
    },
    /**
     * Adds a leader's rows after `from`, if the log agrees with the leader's up to there: returns
     * where they end.
     */
    accept(from: bigint, epoch: number, rows: readonly Row[]): bigint | undefined {
      return endBefore(from) === from && epochAt(from) === epoch ? take(from, rows) : undefined;
    },
    /**
     * Where a log that names these epochs and ends there parts from this one: below it, the two are
     * the same.
     */
    commonEnd(theirs: readonly Epoch[], theirEnd: bigint): bigint {
      const ours = epochsBefore(end(), NAMED_EPOCHS);
      const endOf = (epochs: readonly Epoch[], index: number, logEnd: bigint) =>
        epochs[index - 1]?.position ?? logEnd;
      for (const [index, epoch] of ours.entries()) {
        const same = theirs.findIndex(({ number: theirNumber }) => theirNumber === epoch.number);
        if (same === -1) continue;
        const [a, b] = [endOf(ours, index, end()), endOf(theirs, same, theirEnd)];
        return a < b ? a : b;
      }
      return FIRST_EVENT_POSITION;
    },
  };
}
