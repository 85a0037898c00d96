import { setTimeout as sleep } from 'node:timers/promises';
import type { ProtectedStore } from '../../eventlog/encryption/protectedStore.ts';
import {
  accountStream,
  agentStream,
  replayStream,
  sessionStream,
  webhookStream,
} from '../../eventlog/streams.ts';
import { MIB } from '../../lib/units.ts';
import { isTurnlogError } from '../../lib/errors/turnlogError.ts';
import type { ReadModels } from '../../ports/readModels.ts';
import { rowId } from '../../projections/fold.ts';
import { differingColumn } from './compareRows.ts';
import type { DamagedRow, DamagedRows } from './damagedRows.ts';
import type { IntegrityQueries } from './sqlQueries.ts';
import { readStreamRows } from './streamRows.ts';
import { keyOf, type AnyRow, type KeyValues } from './rowReader.ts';

/** Rows of a step: one table's, in the order of their keys. */
const ROWS_OF_STEP = 4;
/** Damaged rows that a step looks at again. */
const REPEATED_OF_STEP = 4;
/** Rows of longer streams are left to `projections verify`, because their events have to be read. */
const MAX_REVISION = 1_000;
/** The same for larger streams, because their rows are in memory. */
const MAX_BYTES = 4 * MIB;
/** How long read models may be behind the log before a row that differs is passed over. */
const SHOWN_MS = 2_000;

/** The tables whose rows the events of one stream make, and that stream. */
const STREAM_OF = {
  api_keys: ({ account_id }: AnyRow) => accountStream(account_id as string),
  agents: ({ agent_id }: AnyRow) => agentStream(agent_id as string),
  accounts: ({ account_id }: AnyRow) => accountStream(account_id as string),
  sessions: ({ session_id }: AnyRow) => sessionStream(session_id as string),
  turns: ({ session_id }: AnyRow) => sessionStream(session_id as string),
  session_labels: ({ session_id }: AnyRow) => sessionStream(session_id as string),
  webhooks: ({ webhook_id }: AnyRow) => webhookStream(webhook_id as string),
  replays: ({ replay_id }: AnyRow) => replayStream(replay_id as string),
  replay_sessions: ({ replay_id }: AnyRow) => replayStream(replay_id as string),
  replay_turns: ({ replay_id }: AnyRow) => replayStream(replay_id as string),
} as const;
export type SampledTable = keyof typeof STREAM_OF;
const TABLES = Object.keys(STREAM_OF) as SampledTable[];

const isSampled = (table: string): table is SampledTable => table in STREAM_OF;

interface Sampling {
  readModels: IntegrityQueries & Pick<ReadModels, 'untilShown'>;
  store: Pick<ProtectedStore, 'readStream' | 'keys'>;
  damaged: DamagedRows;
  /** Called when another generation of the read models answers queries. */
  onReplaced: () => void;
}

export interface RowSampler {
  /** Notices that the read models were replaced. To be called often. Throws `store_unavailable`. */
  follow(): Promise<void>;
  /** Compares the next few rows with the log. Throws `store_unavailable`. */
  sample(): Promise<void>;
}

/**
 * Compares a few rows at a time with the events of their streams, table by table and in the order of
 * their keys, round and round. A row that differs is recorded once the read models have shown the end
 * of its stream and it still does.
 */
export function createRowSampler({ readModels, store, damaged, onReplaced }: Sampling): RowSampler {
  const cursors = new Map<SampledTable, KeyValues>();
  let turn = 0;
  let generation: number | undefined;

  /**
   * How a row differs from the log, with the end of its stream and the revision that the row has
   * there; undefined when it does not.
   */
  async function differenceOf(table: SampledTable, row: AnyRow) {
    const { revision } = row as { revision: number };
    if (revision > MAX_REVISION) return undefined;
    const stream = STREAM_OF[table](row);
    const id = rowId(keyOf(table, row) as Parameters<typeof rowId>[0]);
    const state = await readStreamRows(store, stream, { upTo: revision, maxBytes: MAX_BYTES });
    if (state.parked || state.isCut) return undefined;
    if (state.revision < revision) return { column: 'revision', position: state.position };
    const then = state.rows[table].get(id);
    const column = then ? differingColumn(then, row) : 'unrecorded';
    const rest = { state, upTo: MAX_REVISION, maxBytes: MAX_BYTES };
    const { position, isCut } = await readStreamRows(store, stream, rest);
    if (isCut) return undefined;
    const latest = state.rows[table].get(id)?.revision;
    if (column !== undefined) return { column, position, latest };
    return latest === revision || state.parked
      ? undefined
      : { column: 'revision', position, latest };
  }

  async function compare(table: SampledTable, row: AnyRow): Promise<void> {
    const key = keyOf(table, row);
    const place: Pick<DamagedRow, 'table' | 'key'> = { table, key: key.join('/') };
    const first = await differenceOf(table, row);
    if (!first) return damaged.clear(place);
    if (first.position === undefined) await sleep(SHOWN_MS, undefined, { ref: false });
    else if (!(await readModels.untilShown(first.position, SHOWN_MS))) return;
    const again = await readModels.findRow(table, key);
    const second = again && (await differenceOf(table, again));
    // The row of a stream that events are appended to meanwhile is behind it again.
    const isBehind = second?.column === 'revision' && second.latest !== undefined;
    const hasAdvanced = isBehind && (again!.revision as number) >= (first.latest ?? Infinity);
    if (second && !hasAdvanced) damaged.record({ ...place, column: second.column });
    else damaged.clear(place);
  }

  /** Compares a row. A stream that can't be read says nothing about it, and is reported elsewhere. */
  async function examine(table: SampledTable, row: AnyRow): Promise<void> {
    try {
      await compare(table, row);
    } catch (error) {
      if (!isTurnlogError(error) || error.code === 'store_unavailable') throw error;
    }
  }

  /** Rows that were found damaged may have been repaired, or removed. */
  async function repeat(): Promise<void> {
    for (const { table, key } of damaged.list().slice(-REPEATED_OF_STEP)) {
      if (!isSampled(table)) continue;
      const [id, ...rest] = key.split('/');
      const second = table === 'turns' ? rest.map(Number) : rest;
      const row = await readModels.findRow(table, [id!, ...second]);
      if (row) await examine(table, row);
    }
  }

  return {
    async follow() {
      const current = await readModels.currentGeneration();
      if (generation !== undefined && generation !== current) onReplaced();
      generation = current;
    },
    async sample() {
      await repeat();
      const table = TABLES[turn % TABLES.length]!;
      turn += 1;
      const rows = await readModels.listRows(table, cursors.get(table), ROWS_OF_STEP);
      const last = rows.at(-1);
      if (last && rows.length === ROWS_OF_STEP) cursors.set(table, keyOf(table, last));
      else cursors.delete(table);
      for (const row of rows) await examine(table, row);
    },
  };
}
