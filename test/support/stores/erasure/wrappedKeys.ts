import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sessionStream } from '../../../../shared/eventlog/streams.ts';
import { asOperator } from '../../processes/operator.ts';

/** The keys of a session's texts, as the key store of a data folder holds them: one or more. */
export async function wrappedKeysOf(folder: string, sessionId: string): Promise<Buffer[]> {
  const data = await asOperator(folder, async ({ store }) =>
    (await store.readStream(sessionStream(sessionId), { direction: 'forwards', limit: 9 })).map(
      (event) => event.data,
    ),
  );
  const ids = new Set(data.join('').match(/(?<="box":")[\w-]{16}/g));
  if (ids.size === 0) throw new Error(`${sessionId} has no text`);
  const keys = new DatabaseSync(join(folder, 'keys.db'), { readOnly: true });
  const wrapped = keys.prepare('SELECT wrapped FROM text_keys WHERE key_id = ?');
  const found = [...ids].map((id) => Buffer.from(wrapped.get(id)!['wrapped'] as Uint8Array));
  keys.close();
  return found;
}
