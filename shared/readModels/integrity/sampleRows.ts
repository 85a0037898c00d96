import { setTimeout as sleep } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import type { ProtectedStore } from '../../eventlog/encryption/protectedStore.ts';
import { reportDamage, type StreamSource } from '../../eventlog/reading/reportDamage.ts';
import {
  accountStream,
  agentStream,
  replayStream,
  sessionStream,
  webhookStream,
} from '../../eventlog/streams.ts';
import type { Permit } from '../../lib/concurrency/capacity.ts';
import { MIB } from '../../lib/units.ts';
import { entriesUpTo } from '../../lib/memory/entriesUpTo.ts';
import type { MemoryLedger } from '../../lib/memory/ledger.ts';
import { isTurnlogError, TurnlogError } from '../../lib/errors/turnlogError.ts';
import type { ReadModels } from '../../ports/readModels.ts';
import { rowId } from '../../projections/fold.ts';
import type { FollowedTable, TurnRow } from '../tables.ts';
import { differingColumn } from './compareRows.ts';
import type { DamagedRow, DamagedRows } from './damagedRows.ts';
import type { IntegrityQueries } from './sqlQueries.ts';
import { dropFinalRows, noRows, readStreamRows, type StreamRows } from './streamRows.ts';
import { keyOf, type AnyRow, type KeyValues } from './rowReader.ts';
import { createWordRows, type ExpectedWords } from './wordRows.ts';

/** Rows of a step: one table's, in the order of their keys. */
const ROWS_OF_STEP = 4;
/** Damaged rows that a step looks at again. */
const REPEATED_OF_STEP = 4;
/**
 * The most that is read of a stream at once; the rest of a longer one is read in later steps. The events
 * of a step and the rows that they make take several times MAX_BYTES of memory.
 */
const MAX_EVENTS = 1_000;
const MAX_BYTES = MIB;
/** Memory per byte of a row or an event: as it is read, as the log makes it, and its texts and words. */
const MEMORY_PER_BYTE = 4;
/** Events of such a part that are compared with their leaves. All are before a row is called damaged. */
const COMPARED_OF_PAGE = 16;
/** Damaged streams that are looked at again, and forgotten once they fit. */
const RECORDED_STREAMS = 10_000;
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
  turn_words: ({ session_id }: AnyRow) => sessionStream(session_id as string),
  webhooks: ({ webhook_id }: AnyRow) => webhookStream(webhook_id as string),
  replays: ({ replay_id }: AnyRow) => replayStream(replay_id as string),
  replay_settings: ({ replay_id }: AnyRow) => replayStream(replay_id as string),
  replay_sessions: ({ replay_id }: AnyRow) => replayStream(replay_id as string),
  replay_turns: ({ replay_id }: AnyRow) => replayStream(replay_id as string),
} as const;
export type SampledTable = keyof typeof STREAM_OF;
const TABLES = Object.keys(STREAM_OF) as SampledTable[];

const isSampled = (table: string): table is SampledTable => table in STREAM_OF;

interface Sampling {
  readModels: IntegrityQueries & Pick<ReadModels, 'untilShown' | 'indexProgress'>;
  source: StreamSource;
  damaged: DamagedRows;
  memory: RowMemorySource;
  /** Called when another generation of the read models answers queries. */
  onReplaced: () => void;
}

interface RowSampler {
  /** Notices that the read models were replaced. To be called often. Throws `store_unavailable`. */
  follow(): Promise<void>;
  /**
   * Compares the next few rows with the log. Rows that lack memory are passed over. Throws
   * `store_unavailable`, and `rate_limited` or `overloaded` without memory.
   */
  sample(): Promise<void>;
}

type RowMemorySource = Pick<MemoryLedger, 'reserveNow' | 'largestRequest'>;

/**
 * The memory of a sampler: one reservation for all that it holds. With several, the row of a long
 * comparison could leave too little of a share for the next step.
 */
function createRowMemory(memory: RowMemorySource) {
  const request = { account_id: '', purpose: 'sessionReads' } as const;
  let permit: Permit | undefined;
  return {
    /** Reserves the bytes that are in use, in all. Throws `rate_limited` or `overloaded`. */
    hold(wanted: number): void {
      const bytes = Math.min(wanted, memory.largestRequest('sessionReads'));
      permit ??= memory.reserveNow({ ...request, bytes });
      if (permit.resize(bytes)) return;
      permit.countRejection();
      throw new TurnlogError('overloaded', 'There is no memory for a row.', { retriable: true });
    },
    release(): void {
      permit?.release();
      permit = undefined;
    },
  };
}

type Store = Pick<ProtectedStore, 'keys' | 'readStream'>;

/**
 * Returns readers of the streams of a source. One compares every event of a page with its leaf, the
 * other a few consecutive ones at a random place, because comparing one may take a millisecond. They
 * reject with `stream_damaged` (recorded).
 */
function createFittingReader(source: StreamSource) {
  // Other readers find more than this comparison, which must not clear what they recorded.
  const recorded = new LRUCache<string, true>(entriesUpTo(RECORDED_STREAMS));

  return (isComplete: boolean): ProtectedStore['readStream'] =>
    async (stream, page) => {
      const events = await source.store.readStream(stream, page);
      const isWhole = isComplete || recorded.has(stream);
      const count = isWhole ? events.length : Math.min(events.length, COMPARED_OF_PAGE);
      const from = Math.floor(Math.random() * (events.length - count + 1));
      const flaw = await source.store.leaves?.findFlaw(events.slice(from, from + count));
      if (flaw) {
        recorded.set(stream, true);
        throw await reportDamage(source, stream, flaw);
      }
      const [first, last] = [events[0], events.at(-1)];
      if (!first || !last || !recorded.has(stream)) return events;
      source.damaged.clear(stream, { from: first.revision, to: last.revision });
      if (!source.damaged.has(stream)) recorded.delete(stream);
      return events;
    };
}

/**
 * Continues a comparison. Resolves with true if it has more to read. Ignores a stream that can't be
 * read, which is reported elsewhere.
 */
async function proceed(comparison: AsyncGenerator<void, void>): Promise<boolean> {
  try {
    return (await comparison.next()).done !== true;
  } catch (error) {
    if (!isTurnlogError(error) || error.code === 'store_unavailable') throw error;
    return false;
  }
}

/** Reads on up to a revision, and yields after each part but the last. */
async function* readUpTo(
  stream: string,
  { state, upTo, id, store }: { state: StreamRows; upTo: number; id: string; store: Store },
): AsyncGenerator<void, void> {
  for (;;) {
    const next = state.revision + 1;
    const part = Math.min(upTo, next - (next % MAX_EVENTS) + MAX_EVENTS - 1);
    await readStreamRows(store, stream, { upTo: part, state, maxBytes: MAX_BYTES });
    if (state.revision >= upTo || (state.revision < part && !state.isCut)) return;
    dropFinalRows(state, id);
    yield;
  }
}

/**
 * Compares a few rows at a time with the events of their streams, table by table and in the order of
 * their keys, round and round. The events of a long stream are read in every other step, for one row
 * at a time. The next one is drawn from the rows passed over meanwhile. A row that differs is recorded
 * once the read models have shown the end of its stream and it still does.
 */
export function createRowSampler({
  readModels,
  source,
  damaged,
  memory,
  onReplaced,
}: Sampling): RowSampler {
  const { hold, release } = createRowMemory(memory);
  const { keys } = source.store;
  // Rows that were made from rewritten events would say what those say.
  const readerOf = createFittingReader(source);
  const sampled = { keys, readStream: readerOf(false) };
  const complete = { keys, readStream: readerOf(true) };
  const cursors = new Map<SampledTable, KeyValues>();
  let turn = 0;
  /** The comparison of a row whose stream is too long for one step. */
  let long: AsyncGenerator<void, void> | undefined;
  /** The bytes of its row, which stays in memory. */
  let longBytes = 0;
  /** The bytes of the last row that was read. */
  let readBytes = 0;
  /** Whether the last step continued it. */
  let wasLong = false;
  /** The next row of a long stream, drawn from those passed over during the comparison. */
  let drawn: { table: SampledTable; key: KeyValues } | undefined;
  let passedOver = 0;
  let generation: number | undefined;

  /** Reads a row within memory for it. Throws `rate_limited` or `overloaded`. */
  async function readRow(table: FollowedTable, key: KeyValues): Promise<AnyRow | undefined> {
    const bytes = await readModels.rowBytes(table, key);
    if (bytes === undefined) return undefined;
    hold(MEMORY_PER_BYTE * (MAX_BYTES + longBytes + bytes));
    readBytes = bytes;
    return readModels.findRow(table, key);
  }

  /** The row of a turn's words as the turn in `state` makes it; undefined if it makes none. */
  async function wordsIn({ rows }: StreamRows, id: string): Promise<ExpectedWords | undefined> {
    const ended = rows.turns.get(id);
    const session = ended && rows.sessions.get(ended.session_id);
    if (!session || ended.end_position === null) return undefined;
    return createWordRows(keys)({ ...ended, account_id: session.account_id });
  }

  /**
   * How a row differs from the log, with the end of its stream and the revision that the row has
   * there; undefined when it does not.
   */
  async function* differenceOf(table: SampledTable, row: AnyRow, store: Store) {
    const { revision } = row as { revision: number };
    const stream = STREAM_OF[table](row);
    const id = rowId(keyOf(table, row) as Parameters<typeof rowId>[0]);
    const state = noRows();
    yield* readUpTo(stream, { state, upTo: revision, id, store });
    if (state.parked) return undefined;
    if (state.revision < revision) return { column: 'revision', position: state.position };
    const then = await (table === 'turn_words' ? wordsIn(state, id) : state.rows[table].get(id));
    if (then === 'unknown') return undefined;
    const column = then ? differingColumn(then, row) : 'unrecorded';
    yield* readUpTo(stream, { state, upTo: Infinity, id, store });
    const { position } = state;
    const latest = state.rows[table === 'turn_words' ? 'turns' : table].get(id)?.revision;
    if (column !== undefined) return { column, position, latest };
    return latest === revision || state.parked
      ? undefined
      : { column: 'revision', position, latest };
  }

  /** True for a turn that was indexed and has no row of words. */
  async function lacksWords(key: KeyValues): Promise<boolean> {
    const { indexed } = await readModels.indexProgress();
    const ended = (await readRow('turns', key)) as TurnRow | undefined;
    if (!ended?.end_position || ended.end_position > (indexed ?? '')) return false;
    const session = await readModels.findRow('sessions', [ended.session_id]);
    if (!session || (await hasWords(key))) return false;
    const account_id = session['account_id'] as string;
    return (await createWordRows(keys)({ ...ended, account_id })) !== 'unknown';
  }

  const hasWords = async (key: KeyValues): Promise<boolean> =>
    (await readModels.rowBytes('turn_words', key)) !== undefined;

  async function lookForWords(key: KeyValues): Promise<void> {
    const place = { table: 'turn_words', key: key.join('/') };
    // Another generation, whose index is behind, may have replaced the first one between two reads.
    if ((await lacksWords(key)) && (await lacksWords(key)))
      damaged.record({ ...place, column: 'missing' });
    else if (damaged.has(place) && !(await hasWords(key))) damaged.clear(place);
  }

  async function* compare(table: SampledTable, row: AnyRow): AsyncGenerator<void, void> {
    const key = keyOf(table, row);
    const place: Pick<DamagedRow, 'table' | 'key'> = { table, key: key.join('/') };
    const first = yield* differenceOf(table, row, sampled);
    if (!first) {
      damaged.clear(place);
      if (table === 'turns') await lookForWords(key);
      return;
    }
    if (first.position === undefined) await sleep(SHOWN_MS, undefined, { ref: false });
    else if (!(await readModels.untilShown(first.position, SHOWN_MS))) return;
    const again = await readRow(table, key);
    const second = again && (yield* differenceOf(table, again, complete));
    // The row of a stream that events are appended to meanwhile is behind it again.
    const isBehind = second?.column === 'revision' && second.latest !== undefined;
    const hasAdvanced = isBehind && (again!.revision as number) >= (first.latest ?? Infinity);
    if (second && !hasAdvanced) damaged.record({ ...place, column: second.column });
    else damaged.clear(place);
  }

  async function examine(table: SampledTable, row: AnyRow): Promise<void> {
    if (!long || (row as { revision: number }).revision < MAX_EVENTS) {
      const comparison = compare(table, row);
      if (!(await proceed(comparison))) return;
      if (!long) {
        [long, longBytes] = [comparison, readBytes];
        return;
      }
    }
    passedOver += 1;
    // Each row has the same chance, so that none is passed over in every round.
    if (Math.random() * passedOver < 1) drawn = { table, key: keyOf(table, row) };
  }

  async function* compareDrawn(table: SampledTable, key: KeyValues) {
    const row = await readRow(table, key);
    if (row) yield* compare(table, row);
  }

  async function proceedWithLong(comparison: AsyncGenerator<void, void>): Promise<void> {
    long = undefined;
    readBytes = longBytes;
    try {
      if (await proceed(comparison)) {
        [long, longBytes] = [comparison, readBytes];
        return;
      }
      if (drawn) long = compareDrawn(drawn.table, drawn.key);
    } finally {
      if (long !== comparison) [longBytes, drawn, passedOver] = [0, undefined, 0];
    }
  }

  /** Examines the row of a key, or passes it over without memory for it. */
  async function examineKey(table: SampledTable, key: KeyValues): Promise<void> {
    try {
      const row = await readRow(table, key);
      if (row) await examine(table, row);
      else if (table === 'turn_words') await lookForWords(key);
    } catch (error) {
      if (!isTurnlogError(error, 'overloaded')) throw error;
    }
  }

  /** Rows that were found damaged may have been repaired, or removed. */
  async function repeat(): Promise<void> {
    for (const { table, key } of damaged.list().slice(-REPEATED_OF_STEP)) {
      if (!isSampled(table)) continue;
      const [id, ...rest] = key.split('/');
      const isOfTurn = table === 'turns' || table === 'turn_words';
      const rowKey = [id!, ...(isOfTurn ? rest.map(Number) : rest)];
      await examineKey(table, rowKey);
    }
  }

  async function compareNext(): Promise<void> {
    wasLong = long !== undefined && !wasLong;
    if (long && wasLong) return proceedWithLong(long);
    await repeat();
    const table = TABLES[turn % TABLES.length]!;
    turn += 1;
    const page = await readModels.listKeys(table, cursors.get(table), ROWS_OF_STEP);
    const last = page.at(-1);
    if (last && page.length === ROWS_OF_STEP) cursors.set(table, last);
    else cursors.delete(table);
    for (const key of page) await examineKey(table, key);
  }

  return {
    async follow() {
      const current = await readModels.currentGeneration();
      if (generation !== undefined && generation !== current) onReplaced();
      generation = current;
    },
    async sample() {
      try {
        hold(MEMORY_PER_BYTE * (MAX_BYTES + longBytes));
        await compareNext();
      } finally {
        if (!long) longBytes = 0;
        if (longBytes > 0) hold(MEMORY_PER_BYTE * longBytes);
        else release();
      }
    },
  };
}
