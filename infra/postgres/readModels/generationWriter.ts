import type { Client } from 'pg';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { Checkpoint } from '../../../shared/ports/eventStore.ts';
import type { ProjectionStore, Reached } from '../../../shared/ports/readModels.ts';
import type { TurnIndex } from '../../../shared/search/turnIndex.ts';
import { applyBatch, type RowAccess } from '../../../shared/projections/applyBatch.ts';
import { transaction } from '../connection.ts';
import { withDatabaseErrors, isRowFailure } from '../failures.ts';
import type { LeaseSession } from '../leases/leaseSession.ts';
import { CHECKPOINT, keyOf, ROW, tellReplaced, writtenSchema, type Place } from './generations.ts';
import { createRowAccess } from './rowAccess.ts';
import { channelOf } from './schema.ts';
import { createWordIndex } from './wordIndex.ts';

/**
 * Makes this writer the latest one of the place. Waits for the transaction of a writer before it,
 * which the server ends if that one is silent.
 */
async function nextWriterEpoch(client: Client, place: Place): Promise<number> {
  const { rows } = await client.query<{ epoch: number }>(
    `UPDATE turnlog.projections SET epoch = epoch + 1 WHERE version = $1 AND slot = $2 RETURNING epoch`,
    keyOf(place),
  );
  if (!rows[0]) throw new Error('this generation of the read models is gone');
  return rows[0].epoch;
}

interface GenerationWriter extends ProjectionStore {
  /** Gives up the generation's checkpoint, if it is this one. Errors: `store_unavailable`. */
  giveUp(checkpoint: Checkpoint): Promise<void>;
  /** Errors: `store_unavailable`. */
  noteLogChanged(reason: string | undefined): Promise<void>;
}

/**
 * The projector's half of the port over one generation. Two things keep a second writer out, each
 * by itself: all of the work is done in the very session that holds the place's lock, and every
 * transaction first locks the place's row, in which it must find its own writer epoch.
 */
export async function openGenerationWriter(
  session: LeaseSession,
  place: Place,
): Promise<GenerationWriter> {
  const { version, stage } = place;
  const epoch = await session.run((client) => nextWriterEpoch(client, place));
  const notify = stage === 'live' ? `RETURNING pg_notify('${channelOf(version)}', position)` : '';
  const rowsIn = new Map<string, RowAccess>();

  /** The rows of a schema, whose statements are made once: the session has one client. */
  function rowAccess(client: Client, schema: string): RowAccess {
    let rows = rowsIn.get(schema);
    if (!rows) rowsIn.set(schema, (rows = createRowAccess(client, schema, version.tables)));
    return rows;
  }

  /**
   * Resolves with the schema to write. The row's lock also keeps generations from changing places
   * before the transaction has ended.
   */
  async function lockPlace(client: Client): Promise<string> {
    const { rows } = await client.query<{ epoch: number; complete: boolean }>(
      `SELECT epoch, complete FROM ${ROW} FOR UPDATE`,
      keyOf(place),
    );
    if (rows[0]?.epoch !== epoch)
      throw new TurnlogError('store_unavailable', 'Another projector has taken over.', {
        retriable: true,
      });
    return writtenSchema(place, rows[0].complete);
  }

  /**
   * The checkpoint never moves back: a rebuild may have put a generation here that is ahead of this
   * projector.
   */
  async function moveCheckpoint(
    client: Client,
    { position, checkpoint: to }: Reached,
  ): Promise<void> {
    await client.query(
      `UPDATE turnlog.projections
       SET position = $3, log_id = $4, event_position = $5, event_id = $6, event_hash = $7
       WHERE version = $1 AND slot = $2 AND coalesce($5, '') >= coalesce(event_position, '') ${notify}`,
      [...keyOf(place), position, to?.log_id, to?.position, to?.event_id, to?.event_hash],
    );
  }

  const apply: ProjectionStore['apply'] = (events, reached) =>
    session.run((client) =>
      applyBatch(events, reached, {
        isRowFailure,
        transaction: (work) =>
          transaction(client, async () => work(rowAccess(client, await lockPlace(client)))),
        moveCheckpoint: (to) => moveCheckpoint(client, to),
      }),
    );

  /** Work on the words of the generation's turns, in a transaction. Errors: `store_unavailable`. */
  const withWords = <Result>(work: (words: TurnIndex) => Promise<Result>): Promise<Result> =>
    withDatabaseErrors(() =>
      session.run((client) =>
        transaction(client, async () => work(createWordIndex(client, await lockPlace(client)))),
      ),
    );

  return {
    unindexed: () => withWords(({ unindexed }) => unindexed()),
    index: (turns) => withWords(({ index }) => index(turns)),
    checkpoint: () =>
      withDatabaseErrors(() =>
        session.run(async (client) => {
          const { rows } = await client.query<Checkpoint>(CHECKPOINT, keyOf(place));
          return rows[0];
        }),
      ),
    apply: (events, reached) => withDatabaseErrors(() => apply(events, reached)),
    giveUp: (checkpoint) =>
      withDatabaseErrors(() =>
        session.run((client) =>
          transaction(client, async () => {
            await lockPlace(client);
            await client.query(
              `UPDATE turnlog.projections SET refused = event_position, position = NULL,
                 log_id = NULL, event_position = NULL, event_id = NULL, event_hash = NULL, log_changed = NULL
               WHERE version = $1 AND slot = $2 AND event_position = $3 AND event_id = $4`,
              [...keyOf(place), checkpoint.position, checkpoint.event_id],
            );
            // Whoever waits for a position is not to be answered from the one that was given up.
            await tellReplaced(client, version);
          }),
        ),
      ),
    noteLogChanged: (reason) =>
      withDatabaseErrors(() =>
        session.run((client) =>
          transaction(client, async () => {
            await lockPlace(client);
            await client.query(
              'UPDATE turnlog.projections SET log_changed = $3 WHERE version = $1 AND slot = $2',
              [...keyOf(place), reason],
            );
            await tellReplaced(client, version);
          }),
        ),
      ),
    close: session.close,
  };
}
