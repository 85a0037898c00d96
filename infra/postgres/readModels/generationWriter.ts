import type { Client } from 'pg';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { Checkpoint } from '../../../shared/ports/eventStore.ts';
import type {
  ParkedStream,
  ProjectionStore,
  AppliedUpTo,
} from '../../../shared/ports/readModels.ts';
import type { TurnIndex } from '../../../shared/search/turnIndex.ts';
import { applyBatch, type RowAccess } from '../../../shared/projections/applyBatch.ts';
import { runInTransaction } from '../connection.ts';
import { withDatabaseErrors, isRowFailure } from '../failures.ts';
import type { LeaseSession } from '../leases/leaseSession.ts';
import {
  CHECKPOINT,
  slotKey,
  ROW,
  notifyReplaced,
  writtenSchema,
  type GenerationSlot,
} from './generations.ts';
import { createRowAccess } from './rowAccess.ts';
import { channelOf } from './schema.ts';
import { createWordIndex } from './wordIndex.ts';

/**
 * Makes this writer the current one of the slot. Waits for the transaction of the previous writer,
 * which the server ends if that writer is silent.
 */
async function claimWriterEpoch(client: Client, slot: GenerationSlot): Promise<number> {
  const { rows } = await client.query<{ epoch: number }>(
    `UPDATE turnlog.projections SET epoch = epoch + 1 WHERE version = $1 AND slot = $2 RETURNING epoch`,
    slotKey(slot),
  );
  if (!rows[0]) throw new Error('this generation of the read models is gone');
  return rows[0].epoch;
}

interface GenerationWriter extends ProjectionStore {
  /** Discards the generation's checkpoint if it is this one. Throws `store_unavailable`. */
  giveUp(checkpoint: Checkpoint): Promise<void>;
  /** Throws `store_unavailable`. */
  noteLogChanged(reason: string | undefined): Promise<void>;
}

/**
 * The projector's half of the port over one generation. Either of two mechanisms excludes a second
 * writer: all work runs in the session that holds the slot's lock, and every transaction first locks the
 * slot's row and checks that it has the epoch of this writer.
 */
export async function openGenerationWriter(
  session: LeaseSession,
  slot: GenerationSlot,
): Promise<GenerationWriter> {
  const { version, stage } = slot;
  const epoch = await session.run((client) => claimWriterEpoch(client, slot));
  const notify = stage === 'live' ? `RETURNING pg_notify('${channelOf(version)}', position)` : '';
  const rowsIn = new Map<string, RowAccess>();
  const unreported: ParkedStream[] = [];

  /** The rows of a schema. Their statements are generated once, because the session has one client. */
  function rowAccess(client: Client, schema: string): RowAccess {
    let rows = rowsIn.get(schema);
    if (!rows) rowsIn.set(schema, (rows = createRowAccess(client, schema, version.tables)));
    return rows;
  }

  /**
   * Resolves with the schema to write, and its generation. The row's lock also prevents a switch of
   * generations until the transaction has ended.
   */
  async function lockSlot(client: Client): Promise<{ schema: string; generation: number }> {
    const { rows } = await client.query<{ epoch: number; complete: boolean; generation: number }>(
      `SELECT epoch, complete, generation FROM ${ROW} FOR UPDATE`,
      slotKey(slot),
    );
    if (rows[0]?.epoch !== epoch)
      throw new TurnlogError('store_unavailable', 'Another projector has taken over.', {
        retriable: true,
      });
    const { complete, generation } = rows[0];
    return { schema: writtenSchema(slot, complete), generation };
  }

  /**
   * The checkpoint never moves back: a rebuild may have published a generation that is ahead of this
   * projector.
   */
  async function moveCheckpoint(
    client: Client,
    { position, checkpoint: to }: AppliedUpTo,
  ): Promise<void> {
    await client.query(
      `UPDATE turnlog.projections
       SET position = $3, log_id = $4, event_position = $5, event_id = $6, event_hash = $7
       WHERE version = $1 AND slot = $2 AND coalesce($5, '') >= coalesce(event_position, '') ${notify}`,
      [...slotKey(slot), position, to?.log_id, to?.position, to?.event_id, to?.event_hash],
    );
  }

  const apply: ProjectionStore['apply'] = (events, reached) =>
    session.run((client) =>
      applyBatch(events, reached, {
        isRowFailure,
        unreported,
        transaction: (work) =>
          runInTransaction(client, async () =>
            work(rowAccess(client, (await lockSlot(client)).schema)),
          ),
        moveCheckpoint: (to) => moveCheckpoint(client, to),
      }),
    );

  /** The generation that turns to index were last read from. */
  let readGeneration: number | undefined;

  /** Works on the word index in a transaction. Throws `store_unavailable`. */
  const withWords = <Result>(
    work: (words: TurnIndex, generation: number) => Promise<Result>,
  ): Promise<Result> =>
    withDatabaseErrors(() =>
      session.run((client) =>
        runInTransaction(client, async () => {
          const { schema, generation } = await lockSlot(client);
          return work(createWordIndex(client, schema), generation);
        }),
      ),
    );

  const readTurns = <Result>(read: (words: TurnIndex) => Promise<Result>): Promise<Result> =>
    withWords((words, generation) => {
      readGeneration = generation;
      return read(words);
    });

  return {
    unindexed: () => readTurns((words) => words.unindexed()),
    unindexedOfAccounts: (after) => readTurns((words) => words.unindexedOfAccounts(after)),
    index: (turns, outOfOrder) =>
      withWords(async (words, generation) => {
        // A rebuild has been published since: its index is empty, and begins with its first turn.
        if (generation === readGeneration) await words.index(turns, outOfOrder);
      }),
    checkpoint: () =>
      withDatabaseErrors(() =>
        session.run(async (client) => {
          const { rows } = await client.query<Checkpoint>(CHECKPOINT, slotKey(slot));
          return rows[0];
        }),
      ),
    apply: (events, reached) => withDatabaseErrors(() => apply(events, reached)),
    giveUp: (checkpoint) =>
      withDatabaseErrors(() =>
        session.run((client) =>
          runInTransaction(client, async () => {
            await lockSlot(client);
            await client.query(
              `UPDATE turnlog.projections SET refused = event_position, position = NULL,
                 log_id = NULL, event_position = NULL, event_id = NULL, event_hash = NULL, log_changed = NULL
               WHERE version = $1 AND slot = $2 AND event_position = $3 AND event_id = $4`,
              [...slotKey(slot), checkpoint.position, checkpoint.event_id],
            );
            // Waits for a position must not end by the discarded checkpoint.
            await notifyReplaced(client, version);
          }),
        ),
      ),
    noteLogChanged: (reason) =>
      withDatabaseErrors(() =>
        session.run((client) =>
          runInTransaction(client, async () => {
            await lockSlot(client);
            await client.query(
              'UPDATE turnlog.projections SET log_changed = $3 WHERE version = $1 AND slot = $2',
              [...slotKey(slot), reason],
            );
            await notifyReplaced(client, version);
          }),
        ),
      ),
    close: session.close,
  };
}
