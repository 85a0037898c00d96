/**
 * Applies a batch to any database, in parts of about 1,000 rows: each as a whole, or event by event if
 * the database rejects a row.
 */
import { requirePosition } from '../eventlog/identity/positions.ts';
import type { ReadableEvent } from '../eventlog/encryption/openTexts.ts';
import { createCheckpoint } from '../eventlog/identity/logIdentity.ts';
import type { ParkedStream, AppliedUpTo } from '../ports/readModels.ts';
import type { AnyRemoval } from './project.ts';
import { fold, listRowPlaces, type RowMaps, type RowPlace } from './fold.ts';
import { partsOf } from './splitBatch.ts';
import { messageOf, planBatch, type PlannedEvent } from './plan.ts';

type Awaitable<Result> = Result | Promise<Result>;

/** Database access for a batch, inside an open transaction. */
export interface RowAccess {
  /** The parked streams. Contains at least the parked ones of `streams`. */
  parkedAmong: (streams: readonly string[]) => Awaitable<ReadonlySet<string>>;
  /** Loads the rows of these places that exist. */
  load: (places: readonly RowPlace[]) => Awaitable<RowMaps>;
  save: (rows: RowMaps) => Awaitable<void>;
  /**
   * Deletes rows, as irrecoverably as the database allows. It may delete some of many rows later, and
   * hides them until then.
   */
  remove: (removals: readonly AnyRemoval[]) => Awaitable<void>;
  park: (streams: readonly ParkedStream[]) => Awaitable<void>;
  /** Deletes single rows. */
  removeRows: (places: readonly RowPlace[]) => Awaitable<void>;
  /** Unparks erased streams, whether they were parked or not. */
  unpark: (streams: readonly string[]) => Awaitable<void>;
  /** Runs a savepoint statement. */
  execute: (sql: string) => Awaitable<unknown>;
}

interface BatchDriver {
  /** Runs `work` in a transaction, which is rolled back when it throws. */
  transaction: <Result>(work: (rows: RowAccess) => Promise<Result>) => Promise<Result>;
  /** Runs in that transaction. Never moves the checkpoint back: another projector may be ahead. */
  moveCheckpoint: (reached: AppliedUpTo) => Awaitable<void>;
  /** True when a row caused the error, not the state of the database. */
  isRowFailure: (error: unknown) => boolean;
  /** Streams that a failed batch parked before the failure: the next batch reports them. Initially empty. */
  unreported: ParkedStream[];
}

/** Loads, folds and saves every touched row once. Returns the streams that it parked. */
async function applyTogether(
  plan: readonly PlannedEvent[],
  rows: RowAccess,
): Promise<ParkedStream[]> {
  if (plan.length === 0) return [];
  const parkedBefore = await rows.parkedAmong([
    ...new Set(plan.map(({ stored }) => stored.stream)),
  ]);
  const { removals, gone, erased, dirty, parked } = fold(
    plan,
    await rows.load(listRowPlaces(plan)),
    parkedBefore,
  );
  if (removals.length > 0) await rows.remove(removals);
  if (gone.length > 0) await rows.removeRows(gone);
  if (erased.length > 0) await rows.unpark(erased);
  await rows.save(dirty);
  await rows.park(parked);
  return parked;
}

async function applyOrPark(
  event: PlannedEvent,
  rows: RowAccess,
  isRowFailure: BatchDriver['isRowFailure'],
): Promise<ParkedStream[]> {
  await rows.execute('SAVEPOINT one_event');
  let parked: ParkedStream[];
  try {
    parked = await applyTogether([event], rows);
  } catch (error) {
    if (!isRowFailure(error)) throw error;
    await rows.execute('ROLLBACK TO one_event');
    // It still counts towards the storage of its account.
    const failed = { ...event, changes: [], error: messageOf(error) };
    parked = await applyTogether([failed], rows);
  }
  await rows.execute('RELEASE one_event');
  return parked;
}

async function applyPart(
  plan: readonly PlannedEvent[],
  reached: AppliedUpTo,
  { transaction, moveCheckpoint, isRowFailure }: BatchDriver,
): Promise<ParkedStream[]> {
  try {
    return await transaction(async (rows) => {
      const parked = await applyTogether(plan, rows);
      await moveCheckpoint(reached);
      return parked;
    });
  } catch (error) {
    if (!isRowFailure(error)) throw error;
  }
  return transaction(async (rows) => {
    const parked: ParkedStream[] = [];
    for (const event of plan) parked.push(...(await applyOrPark(event, rows, isRowFailure)));
    await moveCheckpoint(reached);
    return parked;
  });
}

/** The progress after a part: that of the batch, or up to the last event of an earlier part. */
function reachedBy(
  part: readonly PlannedEvent[],
  isLast: boolean,
  reached: AppliedUpTo,
): AppliedUpTo {
  const { stored } = part.at(-1) ?? {};
  if (isLast || !stored) return reached;
  const { checkpoint } = reached;
  const identity = checkpoint && { root: checkpoint.log_id, declarations: [] };
  return {
    position: stored.position,
    checkpoint: identity && createCheckpoint(identity, stored.stored ?? stored),
  };
}

/**
 * Applies the events in parts, each in one transaction that also moves the checkpoint. If the database
 * rejects a row, each event of the part is applied separately in a second transaction, so that only the
 * stream of that row is parked. Resolves with the streams that were parked. Throws
 * `position_invalid` for a checkpoint that no log can have. Errors leave the database as it was after
 * the last complete part.
 */
export async function applyBatch(
  events: readonly ReadableEvent[],
  reached: AppliedUpTo,
  driver: BatchDriver,
): Promise<ParkedStream[]> {
  // A checkpoint beyond the end of every log would make all waits for a position succeed.
  requirePosition(reached.position);
  const parts = partsOf(planBatch(events));
  for (const [index, part] of parts.entries()) {
    const isLast = index === parts.length - 1;
    driver.unreported.push(...(await applyPart(part, reachedBy(part, isLast, reached), driver)));
  }
  return driver.unreported.splice(0);
}
