import type { Client } from 'pg';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { Position } from '../../../shared/ports/eventStore.ts';
import type { RebuildStore } from '../../../shared/ports/readModels.ts';
import { commitDurably, connectPostgres, runInTransaction } from '../connection.ts';
import { withDatabaseErrors } from '../failures.ts';
import { writerLock } from '../leases/locks.ts';
import { tryLeaseSession } from '../leases/leaseSession.ts';
import {
  dropOlderVersions,
  dropRetired,
  emptyBuilding,
  ensureGeneration,
  slotKey,
  type GenerationSlot,
  ROW,
  switchGenerations,
} from './generations.ts';
import { openGenerationWriter } from './generationWriter.ts';
import { VERSION } from './schema.ts';

const LIVE: GenerationSlot = { version: VERSION, stage: 'live' };
const BUILDING: GenerationSlot = { version: VERSION, stage: 'building' };

/** The longest time that a switch may block the projector while the new generation applies the last events. */
const SWITCH_LIMIT_MS = 15_000;

/** A projector that examines an interrupted rebuild holds the lock for part of a second. */
const LOCK_RETRIES = 4;

/**
 * Locks the row of the live generation, which stops its writer, and resolves with its checkpoint;
 * undefined if it has none.
 */
async function lockLive(client: Client): Promise<Position | undefined> {
  await client.query(`SET LOCAL idle_in_transaction_session_timeout = ${SWITCH_LIMIT_MS}`);
  const { rows } = await client.query<{ position: Position | null }>(
    `SELECT event_position AS position FROM ${ROW} FOR UPDATE`,
    slotKey(LIVE),
  );
  return rows[0]?.position ?? undefined;
}

/**
 * Opens the generation for a rebuild: a new one, or the one of an interrupted rebuild. Throws
 * `rebuild_running` while another rebuild runs, and `store_unavailable`.
 */
export async function openPostgresRebuildStore({
  databaseUrl,
}: {
  databaseUrl: string;
}): Promise<RebuildStore> {
  const lock = writerLock(VERSION.number, 'building');
  const request = { databaseUrl, name: 'turnlog rebuild', lock } as const;
  const session = await tryLeaseSession(request, LOCK_RETRIES);
  if (!session)
    throw new TurnlogError(
      'rebuild_running',
      'Another rebuild of the read models in this database is running.',
    );
  try {
    // The generation is not read before the switch, whose commit flushes all earlier writes. Earlier
    // commits need no flush.
    await withDatabaseErrors(() =>
      session.run(async (client) => void (await client.query('SET synchronous_commit = off'))),
    );
    await withDatabaseErrors(() => session.run((client) => ensureGeneration(client, BUILDING)));
    const writer = await withDatabaseErrors(() => openGenerationWriter(session, BUILDING));
    return {
      ...writer,
      lost: session.lost,
      startOver: () =>
        withDatabaseErrors(() => session.run((client) => emptyBuilding(client, VERSION))),
      publish: (reach) =>
        withDatabaseErrors(async () => {
          const { client, close } = await connectPostgres(databaseUrl, {
            name: 'turnlog rebuild',
            statementMs: SWITCH_LIMIT_MS,
          });
          try {
            await commitDurably(client);
            await ensureGeneration(client, LIVE);
            await runInTransaction(client, async () => {
              const held = await lockLive(client);
              const built = (await writer.checkpoint())?.position;
              // An event that was visible in the live generation must be visible in the next.
              if (held !== undefined && (built === undefined || built < held)) await reach(held);
              await switchGenerations(client, VERSION);
            });
            await dropRetired(client, VERSION);
            await dropOlderVersions(client, VERSION);
          } finally {
            await close();
            await session.close();
          }
        }),
    };
  } catch (error) {
    await session.close();
    throw error;
  }
}
