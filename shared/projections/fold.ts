import type { ParkedStream } from '../ports/readModels.ts';
import {
  OWNERS,
  tableNames,
  type FollowedTable,
  type OwnedTable,
  type Rows,
  type TableName,
  type UsageRow,
} from '../readModels/tables.ts';
import {
  isAddition,
  isDifference,
  isRemoval,
  isRowChange,
  type FindRow,
  type RowKey,
} from './change.ts';
import { accountStream } from '../eventlog/streams.ts';
import { countStored } from '../storage/projection.ts';
import { addUsage } from '../usage/projection.ts';
import { messageOf, type PlannedEvent } from './plan.ts';
import type { AnyRemoval, AnyRowChange } from './project.ts';

const byTable = <Value>(valueOf: () => Value): Record<TableName, Value> =>
  Object.fromEntries(tableNames.map((table) => [table, valueOf()])) as Record<TableName, Value>;

/** Rows by table and `rowId`. */
export type RowMaps = { [Table in TableName]: Map<string, Rows[Table]> };

export const rowMaps = (): RowMaps => byTable(() => new Map()) as RowMaps;

/** The key of a row in its map. */
export const rowId = (key: RowKey): string => (key.length === 1 ? key[0] : `${key[0]}/${key[1]}`);

export interface RowPlace {
  table: TableName;
  key: RowKey;
  id: string;
}

/**
 * Second step: lists the rows that the batch touches, each once, so that the adapter can load them.
 */
export function listRowPlaces(plan: readonly PlannedEvent[]): RowPlace[] {
  const listedIds = byTable(() => new Set<string>());
  const places: RowPlace[] = [];
  function add(table: TableName, key: RowKey): void {
    const id = rowId(key);
    if (listedIds[table].has(id)) return;
    listedIds[table].add(id);
    places.push({ table, key, id });
  }
  let counted: PlannedEvent['counts'] = [];
  for (const { changes, counts } of plan) {
    for (const change of changes) {
      if (isRowChange(change)) add(change.table, change.key);
      // Tells whether the account is erased.
      if (isAddition(change)) add('erasures', [accountStream(change.account_id)]);
    }
    if (counts !== counted) for (const key of counts) add('storage', key);
    counted = counts;
  }
  return places;
}

interface Pending {
  table: FollowedTable;
  id: string;
  row: Rows[FollowedTable];
}

/** True when the row has already seen this revision. */
const hasSeen = (row: Rows[FollowedTable] | undefined, revision: number): boolean =>
  row !== undefined && row.revision >= revision;

/** The changed row; undefined when it has already seen the event or does not change. */
function changed(rows: RowMaps, change: AnyRowChange, revision: number): Pending | undefined {
  const id = rowId(change.key);
  const row = rows[change.table].get(id);
  if (hasSeen(row, revision)) return undefined;
  const apply = change.change as (
    row: Rows[FollowedTable] | undefined,
  ) => Rows[FollowedTable] | undefined;
  const next = apply(row);
  return next && { table: change.table, id, row: next };
}

/** Sets a row. The caller guarantees that it belongs to that table. */
export const setRow = (
  maps: RowMaps,
  { table, id, row }: { table: TableName; id: string; row: Rows[TableName] },
): void => {
  (maps[table] as Map<string, Rows[TableName]>).set(id, row);
};

type IdsByOwner = Map<string, Set<string>>;

function addOwned(ids: IdsByOwner, table: OwnedTable, id: string, row: object): void {
  const owner = (row as Record<string, string>)[OWNERS[table]]!;
  const owned = ids.get(owner);
  if (owned) owned.add(id);
  else ids.set(owner, new Set([id]));
}

/**
 * Removes the rows of an owner from all `maps`. Indexes a table's rows by owner at its first removal, so
 * that a removal costs only its own rows; call `added` for each row that is put into a map later.
 */
function createOwnedRows(maps: readonly RowMaps[]) {
  const tables = new Map<TableName, IdsByOwner>();

  function idsIn(table: OwnedTable): IdsByOwner {
    const existing = tables.get(table);
    if (existing) return existing;
    const ids: IdsByOwner = new Map();
    for (const map of maps)
      for (const [id, row] of map[table] as Map<string, object>) addOwned(ids, table, id, row);
    tables.set(table, ids);
    return ids;
  }

  return {
    added(table: TableName, id: string, row: object): void {
      const ids = tables.get(table);
      if (ids) addOwned(ids, table as OwnedTable, id, row);
    },
    remove({ table, owner }: AnyRemoval): void {
      const ids = idsIn(table);
      for (const id of ids.get(owner) ?? []) for (const map of maps) map[table].delete(id);
      ids.delete(owner);
    },
  };
}

/** Counts the events, also those that cannot be applied: they take as much of the log. */
function count(plan: readonly PlannedEvent[], rows: RowMaps, dirty: RowMaps): void {
  let counted: PlannedEvent['counts'] = [];
  let ids: string[] = [];
  for (const { stored, counts } of plan) {
    if (counts !== counted) ids = counts.map(rowId);
    counted = counts;
    for (const [nth, id] of ids.entries()) {
      const row = countStored(rows.storage.get(id), counts[nth]!, stored);
      if (!row) continue;
      rows.storage.set(id, row);
      dirty.storage.set(id, row);
    }
  }
}

interface Folded {
  /** To be applied before any row is written. */
  removals: AnyRemoval[];
  /** Single rows to remove, also before any row is written. */
  gone: RowPlace[];
  /** The erased streams, which must be unparked. */
  erased: string[];
  /** The rows to write, each once. For usage sums, the amounts to add. */
  dirty: RowMaps;
  /** The streams that this batch parked. */
  parked: ParkedStream[];
}

/**
 * Third step: applies the planned events in order to the loaded `rows`, which it updates. Each
 * event applies completely or not at all. An event that cannot be applied parks its stream. Later
 * events of a parked stream are skipped, except its erasure.
 */
export function fold(
  plan: readonly PlannedEvent[],
  rows: RowMaps,
  parkedBefore: ReadonlySet<string>,
): Folded {
  const dirty = rowMaps();
  const skipped = new Set(parkedBefore);
  const parked = new Map<string, ParkedStream>();
  const removals: AnyRemoval[] = [];
  const gone = new Map<string, RowPlace>();
  const erased: string[] = [];
  count(plan, rows, dirty);
  const owned = createOwnedRows([rows, dirty]);
  const find: FindRow<Rows> = (table, key) => rows[table].get(rowId(key));
  for (const { stored, changes, erases, error } of plan) {
    const { stream, revision, type } = stored;
    if (!erases && skipped.has(stream)) continue;
    try {
      if (error !== undefined) throw new Error(error);
      // Also on redelivery: earlier events, delivered again, may have parked the stream again.
      if (erases) {
        erased.push(stream);
        parked.delete(stream);
        skipped.delete(stream);
      }
      // Every event changes the row of its stream first. Applying an event again would restore rows
      // that were removed since.
      const [first] = changes;
      if (first && isRowChange(first) && hasSeen(find(first.table, first.key), revision)) continue;
      for (const change of changes) {
        if (!isRemoval(change)) continue;
        removals.push(change);
        owned.remove(change);
      }
      const pending: Pending[] = [];
      const added: UsageRow[] = [];
      const removed: RowPlace[] = [];
      for (const change of changes) {
        if (isAddition(change) && !find('erasures', [accountStream(change.account_id)]))
          added.push(...change.amounts(find));
        if (isDifference(change)) {
          const { table } = change;
          const difference = change.difference(find);
          for (const key of difference.removed) removed.push({ table, key, id: rowId(key) });
          for (const row of difference.added)
            pending.push({ table, id: rowId([row.session_id, row.token]), row });
        }
        if (!isRowChange(change)) continue;
        const next = changed(rows, change, revision);
        if (next) pending.push(next);
      }
      for (const amount of added) owned.added('usage', addUsage(dirty.usage, amount), amount);
      for (const place of removed) {
        gone.set(place.id, place);
        for (const maps of [rows, dirty]) maps[place.table].delete(place.id);
      }
      for (const change of pending) {
        setRow(rows, change);
        setRow(dirty, change);
        owned.added(change.table, change.id, change.row);
      }
    } catch (reason) {
      skipped.add(stream);
      parked.set(stream, { stream, revision, event_type: type, error: messageOf(reason) });
    }
  }
  for (const sum of dirty.usage.values()) addUsage(rows.usage, sum);
  return { removals, gone: [...gone.values()], erased, dirty, parked: [...parked.values()] };
}
