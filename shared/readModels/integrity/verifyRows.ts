import { setTimeout as sleep } from 'node:timers/promises';
import { readLogIdentity, createCheckpoint } from '../../eventlog/identity/logIdentity.ts';
import type { ReadableEvent } from '../../eventlog/encryption/openTexts.ts';
import { isTurnlogError, storeUnavailableError } from '../../lib/errors/turnlogError.ts';
import type {
  Checkpoint,
  EventBatch,
  EventLog,
  Position,
  StoredEvent,
} from '../../ports/eventStore.ts';
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
import {
  BEGINNING,
  TABLES_IN_ORDER,
  type ComparedWith,
  type VerificationState,
} from './verificationState.ts';
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

/** A copy of the read models that a verification fills from the log. Reads as `LiveRows` does. */
export interface RowCopy extends Pick<ProjectionStore, 'checkpoint' | 'apply' | 'close'> {
  read(table: VerifiedTable, after: KeyValues | undefined, limit: number): Promise<AnyRow[]>;
  /** Reads turns that have ended, from which rows of `turn_words` are made, in the order of their keys. */
  endedTurns(after: KeyValues | undefined, limit: number): Promise<EndedTurn[]>;
  state(): Promise<VerificationState | undefined>;
  saveState(state: VerificationState): Promise<void>;
  /** Empties the copy, because it may not be of the log. */
  startOver(): Promise<void>;
  /** Closes and deletes it. */
  discard(): Promise<void>;
}

export type VerificationProgress = Pick<VerificationState, 'rows' | 'differing'> & {
  /** `copying` the log's rows, an estimated share of the log; then `comparing` them. */
  step: { copying: number } | { comparing: VerifiedTable };
};

/** How the log is verified while the copy is filled from it. */
export interface LogReading {
  /** The last event of the copy of an interrupted verification, and the tree that it was compared with. */
  after: Checkpoint | undefined;
  tree: ComparedWith | undefined;
  /** Must be called before the first event is passed on, if the events are compared with a tree. */
  onTree: (tree: ComparedWith) => Promise<void>;
  /** Takes each batch after it was verified. */
  onVerified: (batch: EventBatch) => Promise<void>;
  /** Estimates how much of the log was read up to a position, in percent; undefined without rows. */
  percentAt: (position: Position | undefined) => number | undefined;
}

/**
 * Verifies the log from `after` or from an earlier event on, until the signal aborts. Throws
 * `log_changed` if the events of the copy may not be those of the log.
 */
type VerifyLog = (reading: LogReading) => Promise<'fits' | 'misfit' | 'not_compared'>;

export interface Verification {
  log: Pick<EventLog, 'subscribe' | 'firstEvent' | 'readStream'>;
  /** Opens texts as the subscriptions of `log` do. */
  openTexts: (events: readonly StoredEvent[]) => Promise<ReadableEvent[]>;
  verifyLog: VerifyLog;
  live: LiveRows;
  copy: RowCopy;
  keys: WordKeys;
  signal: AbortSignal;
  onProgress: (progress: VerificationProgress) => void;
}

/** The result; `complete` is false when the signal has interrupted it. */
export type VerificationResult = Pick<VerificationState, 'rows' | 'differing' | 'named'> & {
  complete: boolean;
  /** The point at which the copy of an interrupted verification was continued. */
  continued: { after: Position; rows: number } | undefined;
  /** Why the copy of an interrupted verification was not continued. */
  anew: string | undefined;
};

/** Applies those of a batch's events to the copy that come before the goal or are there. */
async function applyUpTo(
  { log, copy }: Verification,
  { events, checkpoint }: Pick<EventBatch, 'events' | 'checkpoint'>,
  goal: Position,
): Promise<Position | undefined> {
  const upToGoal = events.filter(({ position }) => position <= goal) as ReadableEvent[];
  const last = upToGoal.at(-1);
  if (!last) return undefined;
  const isWhole = upToGoal.length === events.length;
  const reached = isWhole
    ? checkpoint
    : createCheckpoint((await readLogIdentity(log))!, last.stored ?? last);
  await copy.apply(upToGoal, { position: last.position, checkpoint: reached });
  return last.position;
}

/**
 * Applies the log to the copy up to exactly `goal`. Resolves with false when the log has no event
 * there, and when the signal aborts.
 */
async function advance(
  verification: Verification,
  goal: Position,
  onPosition: (position: Position) => void = () => undefined,
): Promise<boolean> {
  const { log, copy, signal } = verification;
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
      const applied = await applyUpTo(verification, { events, checkpoint }, goal);
      if (applied !== undefined) onPosition(applied);
      if (applied === goal) return true;
      if (applied !== events.at(-1)?.position) return false;
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
  const knownKeys = new Set(differences.map(({ key }) => key));
  differences.push(...misfits.filter(({ key }) => !knownKeys.has(key)));
  return {
    ...state,
    table: boundary ? table : TABLES_IN_ORDER[TABLES_IN_ORDER.indexOf(table) + 1],
    after: boundary,
    rows: state.rows + compared.length,
    differing: state.differing + differences.length,
    named: [...named, ...differences].slice(0, MAX_NAMED),
  };
}

/**
 * Verifies the log, and fills the copy with the verified events up to the read models' checkpoint.
 * Resolves with undefined if the log does not fit.
 */
async function fillCopy(
  verification: Verification,
  begun: VerificationState,
): Promise<VerificationState | undefined> {
  const { live, copy, openTexts, verifyLog, signal, onProgress } = verification;
  let state = begun;
  async function setTree(tree: ComparedWith | undefined): Promise<void> {
    state = { ...state, tree };
    await copy.saveState(state);
  }
  const { checkpoint } = await live.read(TABLES_IN_ORDER[0]!, undefined, 1);
  const goal = checkpoint?.position;
  const after = await copy.checkpoint();
  const outcome = await verifyLog({
    after,
    tree: state.tree,
    onTree: setTree,
    async onVerified(batch) {
      const events = batch.events.filter(({ position }) => position > (after?.position ?? ''));
      if (goal === undefined || events.length === 0 || events[0]!.position > goal) return;
      await applyUpTo(verification, { ...batch, events: await openTexts(events) }, goal);
    },
    percentAt: (position) => (goal && position ? percentOf(position, goal) : undefined),
  });
  signal.throwIfAborted();
  if (outcome === 'misfit') return undefined;
  // The next verification must not take what follows for compared.
  if (outcome === 'not_compared' && state.tree) await setTree(undefined);
  if (goal !== undefined)
    await advance(verification, goal, (position) =>
      onProgress({ ...state, step: { copying: percentOf(position, goal) } }),
    );
  return state;
}

/**
 * Compares all rows of the read models with a copy that it makes from the log, page by page, each as of
 * one event: the projector continues meanwhile. Up to the read models' position at its start the copy gets
 * only events that were verified. Compares no row if the log does not fit. An interrupted verification
 * continues where it stopped; the caller deletes the copy of a complete one. Errors: `store_unavailable`,
 * and those of a subscription.
 */
export async function verifyRows(verification: Verification): Promise<VerificationResult> {
  const { copy, signal, onProgress } = verification;
  let state = (await copy.state()) ?? BEGINNING;
  const from = await copy.checkpoint();
  let continued = from && { after: from.position, rows: state.rows };
  let anew: string | undefined;
  const result = (complete: boolean): VerificationResult => {
    const { rows, differing, named } = state;
    return { complete, rows, differing, named, continued, anew };
  };

  async function fill(): Promise<VerificationState | undefined> {
    try {
      return await fillCopy(verification, state);
    } catch (error) {
      if (!isTurnlogError(error, 'log_changed') && !isTurnlogError(error, 'log_restored'))
        throw error;
      await copy.startOver();
      [state, continued, anew] = [BEGINNING, undefined, error.message];
      return fillCopy(verification, state);
    }
  }

  try {
    const filled = await fill();
    if (!filled) {
      [state, continued] = [BEGINNING, undefined];
      return result(true);
    }
    state = filled;
    for (let { table } = state; table !== undefined; { table } = state) {
      signal.throwIfAborted();
      onProgress({ ...state, step: { comparing: table } });
      state = await comparePage(verification, state, table);
      await copy.saveState(state);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
    return result(false);
  }
  return result(true);
}
