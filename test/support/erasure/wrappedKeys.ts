import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { openSqliteEventLog } from '../../../infra/sqlite/eventStoreLog.ts';
import { sessionStream } from '../../../shared/eventlog/streams.ts';

/** The keys of a session's texts, as the key store of a data folder holds them: at least one. */
export async function wrappedKeysOf(folder: string, session: string): Promise<Buffer[]> {
  const log = openSqliteEventLog({ folder });
  const events = await log.readStream(sessionStream(session), { direction: 'forwards', limit: 9 });
  await log.close();
  const ids = events.flatMap(({ data }) => data.match(/(?<="box":")[\w-]{16}/g) ?? []);
  const keys = new DatabaseSync(join(folder, 'keys.db'), { readOnly: true });
  const wrapped = keys.prepare('SELECT wrapped FROM text_keys WHERE key_id = ?');
  const found = [...new Set(ids)].map((id) =>
    Buffer.from(wrapped.get(id)!['wrapped'] as Uint8Array),
  );
  keys.close();
  if (found.length === 0) throw new Error(`The session ${session} has no texts.`);
  return found;
}
