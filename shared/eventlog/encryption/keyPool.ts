import { randomBytes, randomFillSync } from 'node:crypto';
import type { KeyStore } from '../../ports/keyStore.ts';
import type { MasterKeys } from './masterKeys.ts';
import type { TextKey } from './protectedText.ts';

/** Keys that are stored together: few in a process that has used none yet. */
const FIRST_BATCH = 16;
const LARGEST_BATCH = 512;
/** After a failure the pool is used up first; a refill is tried at most this often. */
const TRY_AGAIN_AFTER_MS = 1_000;

const KEY_BYTES = 32;
const ID_BYTES = 12;

/** A new key with this id, not stored yet. */
export const createKey = (id: string): TextKey => ({
  id,
  secret: randomBytes(KEY_BYTES).toString('base64url'),
});

function createKeys(count: number): TextKey[] {
  const bytes = randomFillSync(Buffer.alloc(count * (KEY_BYTES + ID_BYTES)));
  const keys = Array.from({ length: count }, (_, index) => {
    const at = index * (KEY_BYTES + ID_BYTES);
    return {
      id: bytes.toString('base64url', at, at + ID_BYTES),
      secret: bytes.toString('base64url', at + ID_BYTES, at + ID_BYTES + KEY_BYTES),
    };
  });
  bytes.fill(0);
  return keys;
}

/**
 * Hands out new keys, stored before use. They are created in batches, the next one ahead of need,
 * so that callers rarely wait for the disk. Unused keys remain in the store when the process ends.
 */
export function createKeyPool(
  store: Pick<KeyStore, 'insert'>,
  masterKeys: Pick<MasterKeys, 'wrap'>,
): () => TextKey | Promise<TextKey> {
  const pool: TextKey[] = [];
  let batch = FIRST_BATCH;
  let filling: Promise<void> | undefined;
  let failedAt = -Infinity;

  async function fill(): Promise<void> {
    const keys = createKeys(batch);
    await store.insert(keys.map(masterKeys.wrap));
    pool.push(...keys);
    batch = Math.min(batch * 2, LARGEST_BATCH);
  }

  const refill = (): Promise<void> =>
    (filling ??= fill()
      .catch((error: unknown) => {
        failedAt = performance.now();
        throw error;
      })
      .finally(() => {
        filling = undefined;
      }));

  async function next(): Promise<TextKey> {
    for (;;) {
      await refill();
      const key = pool.pop();
      if (key) return key;
    }
  }

  return () => {
    const key = pool.pop();
    if (!key) return next();
    const needsRefill =
      pool.length < batch / 4 && performance.now() - failedAt > TRY_AGAIN_AFTER_MS;
    // A caller that finds the pool empty gets the error.
    if (needsRefill && !filling) refill().catch(() => undefined);
    return key;
  };
}
