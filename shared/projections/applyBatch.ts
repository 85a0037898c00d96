/** Applies a batch, whatever the database: together, or, where it refuses a row, one by one. */
import { requirePosition } from '../eventlog/identity/positions.ts';
import type { ReadableEvent } from '../eventlog/encryption/openTexts.ts';
import type { ParkedStream, Reached } from '../ports/readModels.ts';
import type { AnyRemoval } from './project.ts';
import { fold, keysOf, type RowMaps, type RowPlace } from './fold.ts';
import { messageOf, planBatch, type PlannedEvent } from './plan.ts';

type Awaitable<Result> = Result | Promise<Result>;

/** What a batch needs of a database, inside a transaction that is open. */
export interface RowAccess {
  /** The parked ones of these streams, and any others. */
  parkedAmong: (streams: readonly string[]) => Awaitable<ReadonlySet<string>>;
  /** The rows of these places that exist. */
  load: (places: readonly RowPlace[]) => Awaitable<RowMaps>;
  save: (rows: RowMaps) => Awaitable<void>;
  /** Takes rows away for good, as far as the database can. */
  remove: (removals: readonly AnyRemoval[]) => Awaitable<void>;
  park: (streams: readonly ParkedStream[]) => Awaitable<void>;
  /** Lets go of streams that were erased, whether they were parked or not. */
  unpark: (streams: readonly string[]) => Awaitable<void>;
  /** Runs a statement on savepoints. */
  execute: (sql: string) => Awaitable<unknown>;
}

interface BatchDriver {
  /** Runs the work in a transaction; nothing has happened when it throws. */
  transaction: <Result>(work: (rows: RowAccess) => Promise<Result>) => Promise<Result>;
  /** Inside that transaction. Never moves it back: somebody else may be ahead. */
  moveCheckpoint: (reached: Reached) => Awaitable<void>;
  /** True when a row is to blame and not the database. */
  isRowFailure: (error: unknown) => boolean;
}

/** Loads, folds and saves every touched row once. Returns the streams that this parked. */
async function applyTogether(
  plan: readonly PlannedEvent[],
  rows: RowAccess,
): Promise<ParkedStream[]> {
  if (plan.length === 0) return [];
  const parkedBefore = await rows.parkedAmong([
    ...new Set(plan.map(({ stored }) => stored.stream)),
  ]);
  const { removals, erased, dirty, parked } = fold(
    plan,
    await rows.load(keysOf(plan)),
    parkedBefore,
  );
  if (removals.length > 0) await rows.remove(removals);
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
    const { stream, revision, type } = event.stored;
    parked = [{ stream, revision, event_type: type, error: messageOf(error) }];
    await rows.park(parked);
  }
  await rows.execute('RELEASE one_event');
  return parked;
}

/**
 * Applies the events and moves the checkpoint in one transaction. Where the database refuses a row,
 * each event is applied by itself in a second one, so that only the guilty stream is parked.
 * Resolves with the streams that this batch parked.
 * Errors: `position_invalid` for a checkpoint that no log can have; what the driver throws. Nothing
 * has happened then.
 */
export async function applyBatch(
  events: readonly ReadableEvent[],
  reached: Reached,
  { transaction, moveCheckpoint, isRowFailure }: BatchDriver,
): Promise<ParkedStream[]> {
  // Whoever waits for a position would take one that lies beyond every log for all there is.
  requirePosition(reached.position);
  const plan = planBatch(events);
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
