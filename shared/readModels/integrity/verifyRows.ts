import { setTimeout as sleep } from 'node:timers/promises';
import { readLogIdentity, createCheckpoint } from '../../eventlog/identity/logIdentity.ts';
import type { ReadableEvent } from '../../eventlog/encryption/openTexts.ts';
import { isTurnlogError, storeUnavailableError } from '../../lib/errors/turnlogError.ts';
import type { Checkpoint, EventLog, Position } from '../../ports/eventStore.ts';
import type { ProjectionStore } from '../../ports/readModels.ts';
import type { EndedTurn } from '../../search/turnIndex.ts';
import { percentOf } from '../../projections/progress.ts';
import { differingColumn } from './compareRows.ts';
import type { DamagedRow } from './damagedRows.ts';
import {
  compareKeys,
  keyOf,
  VERIFIED_TABLES,
  type AnyRow,
  type KeyValues,
  type LiveRows,
  type RowsAt,
  type VerifiedTable,
} from './rowReader.ts';
import { expectedWordRows, type WordKeys } from './wordRows.ts';

const BATCH_SIZE = 1_000;
/** Rows of a page; rows with long texts have up to some megabytes each. */
const PAGE_ROWS = { short: 2_000, long: 100 };
/** Differing rows that are named; all are counted. */
const MAX_NAMED = 100;
/** How long read models that fell behind the copy are waited for. */
const BEHIND_MS = 30_000;
const POLL_MS = 200;
/** A node of a cluster may show the end of the log later. */
const END_MS = 2_000;

/** Where a verification is; kept in its copy, so that the next one continues there. */
export interface VerificationState {
  /** The table that is compared next, and the key after which; undefined once all tables are. */
  table: VerifiedTable | undefined;
  after: KeyValues | undefined;
  rows: number;
  differing: number;
  /** The first ones. */
  named: DamagedRow[];
}

/** A copy of the read models that a verification fills from the log. Reads as `LiveRows` does. */
export interface RowCopy extends Pick<ProjectionStore, 'checkpoint' | 'apply' | 'close'> {
  read(table: VerifiedTable, after: KeyValues | undefined, limit: number): Promise<AnyRow[]>;
  /** Reads turns that have ended, from which rows of `turn_words` are made, in the order of their keys. */
  endedTurns(after: KeyValues | undefined, limit: number): Promise<EndedTurn[]>;
  state(): Promise<VerificationState | undefined>;
  saveState(state: VerificationState): Promise<void>;
  /** Empties the copy, because the log does not contain its checkpoint. */
  startOver(): Promise<void>;
  /** Closes and deletes it. */
  discard(): Promise<void>;
}

export type VerificationProgress = Pick<VerificationState, 'rows' | 'differing'> & {
  /** `copying` the log's rows, an estimated share of the log; then `comparing` them. */
  step: { copying: number } | { comparing: VerifiedTable };
};

export interface Verification {
  log: Pick<EventLog, 'subscribe' | 'firstEvent' | 'readStream'>;
  live: LiveRows;
  copy: RowCopy;
  keys: WordKeys;
  signal: AbortSignal;
  onProgress: (progress: VerificationProgress) => void;
}

/** The result; `complete` is false when the signal has interrupted it. */
export type VerificationResult = Pick<VerificationState, 'rows' | 'differing' | 'named'> & {
  complete: boolean;
};

const TABLES = Object.keys(VERIFIED_TABLES) as VerifiedTable[];
const BEGINNING: VerificationState = {
  table: TABLES[0],
  after: undefined,
  rows: 0,
  differing: 0,
  named: [],
};

/**
 * Applies the log to the copy up to exactly `goal`. Resolves with false when the log has no event
 * there, and when the signal aborts.
 */
async function advance(
  { log, copy, signal }: Verification,
  goal: Position,
  onPosition: (position: Position) => void = () => undefined,
): Promise<boolean> {
  const ended = new AbortController();
  const after = await copy.checkpoint();
  if (after !== undefined && after.position >= goal) return after.position === goal;
  const batches = log.subscribe({
    after,
    batchSize: BATCH_SIZE,
    signal: AbortSignal.any([signal, ended.signal]),
  });
  let endSince: number | undefined;
  try {
    for await (const { events, checkpoint, caughtUp } of batches) {
      const upToGoal = events.filter(({ position }) => position <= goal) as ReadableEvent[];
      const last = upToGoal.at(-1);
      if (last) {
        const isWhole = upToGoal.length === events.length;
        const reached = isWhole
          ? checkpoint
          : createCheckpoint((await readLogIdentity(log))!, last.stored ?? last);
        await copy.apply(upToGoal, { position: last.position, checkpoint: reached });
        onPosition(last.position);
        if (last.position === goal) return true;
      }
      if (upToGoal.length < events.length) return false;
      if (!caughtUp) continue;
      endSince ??= performance.now();
      if (performance.now() - endSince > END_MS) return false;
      // A subscription that has caught up says nothing until something is written.
      setTimeout(() => ended.abort(), END_MS).unref();
    }
    return false;
  } finally {
    ended.abort();
  }
}

const nameOf = (table: VerifiedTable, row: AnyRow): string => keyOf(table, row).join('/');

/** The rows that differ between two pages of a table, both in the order of the keys. */
export function differencesOf(
  table: VerifiedTable,
  expected: readonly AnyRow[],
  found: readonly AnyRow[],
): DamagedRow[] {
  const differences: DamagedRow[] = [];
  let [left, right] = [0, 0];
  while (left < expected.length || right < found.length) {
    const [one, other] = [expected[left], found[right]];
    const order = !one ? 1 : !other ? -1 : compareKeys(keyOf(table, one), keyOf(table, other));
    if (order < 0) differences.push({ table, key: nameOf(table, one!), column: 'missing' });
    else if (order > 0)
      differences.push({ table, key: nameOf(table, other!), column: 'unrecorded' });
    else {
      const column = differingColumn(one!, other!);
      if (column !== undefined) differences.push({ table, key: nameOf(table, one!), column });
    }
    if (order <= 0) left += 1;
    if (order >= 0) right += 1;
  }
  return differences;
}

/** The last key of a page, unless it is the last page. */
const endOf = (
  table: VerifiedTable,
  page: readonly AnyRow[],
  limit: number,
): KeyValues | undefined => (page.length === limit ? keyOf(table, page.at(-1)!) : undefined);

/** The rows of a table that the log makes, and the key up to which they are complete. */
async function readExpected(
  { copy, keys }: Verification,
  table: VerifiedTable,
  after: KeyValues | undefined,
  { rows: found, indexed, limit }: RowsAt & { limit: number },
): Promise<{ rows: AnyRow[]; end: KeyValues | undefined }> {
  if (table !== 'turn_words') {
    const rows = await copy.read(table, after, limit);
    return { rows, end: endOf(table, rows, limit) };
  }
  const turns = await copy.endedTurns(after, limit);
  const rows = await expectedWordRows(keys, turns, { found, indexed });
  return { rows, end: endOf(table, turns, limit) };
}

/** A difference of the checkpoint itself: it names an event that the log does not have. */
const CHECKPOINT_DIFFERS: DamagedRow = { table: 'checkpoint', key: '1', column: 'position' };

/** Reads a page of live rows that are not older than the copy. */
async function readLive(
  { live, signal }: Verification,
  copied: Checkpoint | undefined,
  ...page: Parameters<LiveRows['read']>
): ReturnType<LiveRows['read']> {
  const since = performance.now();
  for (;;) {
    const read = await live.read(...page);
    if ((read.checkpoint?.position ?? '') >= (copied?.position ?? '')) return read;
    if (performance.now() - since > BEHIND_MS)
      throw storeUnavailableError('The read models show less of the log than they did before.');
    await sleep(POLL_MS, undefined, { signal });
  }
}

/** Compares the next page of the table. Returns the state after it. */
async function comparePage(
  verification: Verification,
  state: VerificationState,
  table: VerifiedTable,
): Promise<VerificationState> {
  const { copy, signal } = verification;
  const { after, named } = state;
  const limit = VERIFIED_TABLES[table].longRows ? PAGE_ROWS.long : PAGE_ROWS.short;
  const copied = await copy.checkpoint();
  const read = await readLive(verification, copied, table, after, limit);
  const { rows: found, checkpoint, misfits = [] } = read;
  const differences: DamagedRow[] = [];
  if (checkpoint && !named.some((row) => row.table === CHECKPOINT_DIFFERS.table)) {
    const isReached = await advance(verification, checkpoint.position);
    signal.throwIfAborted();
    if (!isReached) differences.push(CHECKPOINT_DIFFERS);
  }
  const expected = await readExpected(verification, table, after, { ...read, limit });
  const [boundary] = [expected.end, endOf(table, found, limit)]
    .filter((end) => end !== undefined)
    .toSorted(compareKeys);
  const within = (row: AnyRow): boolean =>
    boundary === undefined || compareKeys(keyOf(table, row), boundary) <= 0;
  const compared = found.filter(within);
  differences.push(...differencesOf(table, expected.rows.filter(within), compared));
  const known = new Set(differences.map(({ key }) => key));
  differences.push(...misfits.filter(({ key }) => !known.has(key)));
  return {
    table: boundary ? table : TABLES[TABLES.indexOf(table) + 1],
    after: boundary,
    rows: state.rows + compared.length,
    differing: state.differing + differences.length,
    named: [...named, ...differences].slice(0, MAX_NAMED),
  };
}

/** Fills the copy up to the read models' checkpoint. */
async function fillCopy(verification: Verification, state: VerificationState): Promise<void> {
  const { live, copy, onProgress } = verification;
  const { checkpoint } = await live.read(TABLES[0]!, undefined, 1);
  if (!checkpoint) return;
  const goal = checkpoint.position;
  const report = (position: Position): void =>
    onProgress({ ...state, step: { copying: percentOf(position, goal) } });
  try {
    await advance(verification, goal, report);
  } catch (error) {
    if (!isTurnlogError(error, 'log_changed') && !isTurnlogError(error, 'log_restored'))
      throw error;
    await copy.startOver();
    await advance(verification, goal, report);
  }
}

/**
 * Compares all rows of the read models with a copy that it makes from the log, page by page, each as of
 * one event: the projector goes on meanwhile. An interrupted verification continues where it stopped;
 * a complete one deletes its copy. Errors: `store_unavailable`, and those of a subscription.
 */
export async function verifyRows(verification: Verification): Promise<VerificationResult> {
  const { copy, signal, onProgress } = verification;
  let state = (await copy.state()) ?? BEGINNING;
  try {
    await fillCopy(verification, state);
    for (let { table } = state; table !== undefined; { table } = state) {
      signal.throwIfAborted();
      onProgress({ ...state, step: { comparing: table } });
      state = await comparePage(verification, state, table);
      await copy.saveState(state);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
    return { ...state, complete: false };
  }
  return { ...state, complete: true };
}
