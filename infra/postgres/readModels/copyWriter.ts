import type { Client } from 'pg';
import { TurnlogError } from '../../../shared/errors.ts';
import type { Position } from '../../../shared/ports/eventStore.ts';
import type { ParkedStream, ProjectionStore } from '../../../shared/ports/readModels.ts';
import { requirePosition } from '../../../shared/eventlog/positions.ts';
import { planBatch } from '../../../shared/projections/plan.ts';
import { transaction } from '../connection.ts';
import { guarded, isRowFailure } from '../failures.ts';
import type { WriterSession } from '../writerSession.ts';
import { CHANNEL, ROW, VERSION, writtenSchema, type Slot } from './copies.ts';
import { createRowStore, type RowStore } from './rowStore.ts';

/** Makes this writer the latest one of the copy. Waits for the transaction of a writer before it, which the server ends if that one is silent. */
async function nextEpoch(client: Client, slot: Slot): Promise<number> {
  const { rows } = await client.query<{ epoch: number }>(
    `UPDATE turnlog.projections SET epoch = epoch + 1 WHERE version = $1 AND slot = $2 RETURNING epoch`,
    [VERSION, slot],
  );
  if (!rows[0]) throw new Error('the copy of the read models is gone');
  return rows[0].epoch;
}

export interface CopyWriter extends ProjectionStore {
  /** Gives up the copy's checkpoint, if it is this one. Errors: `store_unavailable`. */
  giveUp(checkpoint: Position): Promise<void>;
}

/**
 * The projector's half of the port over one copy. Two things keep a second writer out, each by itself: all of the work is done
 * in the very session that holds the copy's lock, and every transaction first locks the copy's row, in which it must find its own epoch.
 */
export async function openCopyWriter(session: WriterSession, slot: Slot): Promise<CopyWriter> {
  const epoch = await session.run((client) => nextEpoch(client, slot));

  /** Resolves with the schema to write. The row's lock also keeps copies from changing places before the transaction has ended. */
  async function lockCopy(client: Client): Promise<string> {
    const { rows } = await client.query<{ epoch: number; complete: boolean }>(
      `SELECT epoch, complete FROM ${ROW} FOR UPDATE`,
      [VERSION, slot],
    );
    if (rows[0]?.epoch !== epoch)
      throw new TurnlogError('store_unavailable', 'Another projector has taken over.', {
        retriable: true,
      });
    return writtenSchema(slot, rows[0].complete);
  }

  /** The checkpoint never moves back: a rebuild may have put a copy here that is ahead of this projector. */
  async function moveCheckpoint(client: Client, checkpoint: Position): Promise<void> {
    const notify = slot === 'live' ? `RETURNING pg_notify('${CHANNEL}', position)` : '';
    await client.query(
      `UPDATE turnlog.projections SET position = greatest(position, $3) WHERE version = $1 AND slot = $2 ${notify}`,
      [VERSION, slot, checkpoint],
    );
  }

  const applyWith = (
    client: Client,
    checkpoint: Position,
    work: (rows: RowStore) => Promise<ParkedStream[]>,
  ): Promise<ParkedStream[]> =>
    transaction(client, async () => {
      const parked = await work(createRowStore(client, await lockCopy(client)));
      await moveCheckpoint(client, checkpoint);
      return parked;
    });

  return {
    checkpoint: () =>
      guarded(() =>
        session.run(async (client) => {
          const { rows } = await client.query<{ position: Position | null }>(
            `SELECT position FROM ${ROW}`,
            [VERSION, slot],
          );
          return rows[0]?.position ?? undefined;
        }),
      ),
    apply: (events, checkpoint) =>
      guarded(() =>
        session.run(async (client) => {
          // The maximum of the checkpoints is kept: one that lies beyond every log would never go away again.
          requirePosition(checkpoint);
          const plan = planBatch(events);
          try {
            return await applyWith(client, checkpoint, (rows) => rows.applyTogether(plan));
          } catch (error) {
            if (!isRowFailure(error)) throw error;
            return applyWith(client, checkpoint, (rows) => rows.applyOneByOne(plan));
          }
        }),
      ),
    giveUp: (checkpoint) =>
      guarded(() =>
        session.run((client) =>
          transaction(client, async () => {
            await lockCopy(client);
            await client.query(
              `UPDATE turnlog.projections SET refused = position, position = NULL
               WHERE version = $1 AND slot = $2 AND position = $3`,
              [VERSION, slot, checkpoint],
            );
            // Whoever waits for a position is not to be answered from the one that was given up.
            await client.query(`SELECT pg_notify('${CHANNEL}', '')`);
          }),
        ),
      ),
    close: session.close,
  };
}
