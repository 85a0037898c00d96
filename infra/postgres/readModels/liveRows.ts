import { storeUnavailableError } from '../../../shared/lib/errors/turnlogError.ts';
import type { Checkpoint, Position } from '../../../shared/ports/eventStore.ts';
import {
  selectRows,
  VERIFIED_TABLES,
  type AnyRow,
  type LiveRows,
} from '../../../shared/readModels/integrity/rowReader.ts';
import { connectPostgres, runInTransaction } from '../connection.ts';
import { isMissing, withDatabaseErrors } from '../failures.ts';
import { CHECKPOINT, slotKey } from './generations.ts';
import { liveSchema, VERSION } from './schema.ts';

/** Rows with long texts take a while to send. */
const STATEMENT_MS = 30_000;
const SCHEMA = liveSchema(VERSION);

/** The rows of the live generation, on a separate connection. Throws `store_unavailable`. */
export async function openPostgresLiveRows({
  databaseUrl,
}: {
  databaseUrl: string;
}): Promise<LiveRows> {
  const { client, close } = await withDatabaseErrors(() =>
    connectPostgres(databaseUrl, { name: 'turnlog verify', statementMs: STATEMENT_MS }),
  );
  return {
    read: (table, after, limit) =>
      withDatabaseErrors(() =>
        runInTransaction(client, async () => {
          await client.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY');
          const slot = slotKey({ version: VERSION, stage: 'live' });
          const [checkpoint] = (await client.query<Checkpoint>(CHECKPOINT, slot)).rows;
          const target = `${SCHEMA}.${table}`;
          const page = { after, limit };
          const sql = selectRows(target, VERIFIED_TABLES[table], page, (index) => `$${index}`);
          const { rows } = await client.query<AnyRow>(sql, [...(after ?? [])]);
          if (table !== 'turn_words') return { checkpoint, rows };
          const position = `SELECT position FROM ${SCHEMA}.indexed`;
          const [end] = (await client.query<{ position: Position }>(position)).rows;
          return { checkpoint, rows, indexed: end?.position };
        }).catch((error: unknown) => {
          throw isMissing(error)
            ? storeUnavailableError('The read models are being built.', error)
            : error;
        }),
      ),
    close,
  };
}
