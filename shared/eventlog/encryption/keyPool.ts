import { randomBytes, randomFillSync } from 'node:crypto';
import type { KeyStore } from '../../ports/keyStore.ts';
import type { MasterKeys } from './masterKeys.ts';
import type { TextKey } from './protectedText.ts';

/** Keys that are made durable together: few in a process that has not used any yet. */
const FIRST_BATCH = 16;
const LARGEST_BATCH = 512;
/** After a failure keys are used up before it is tried again, but for one try in so long. */
const TRY_AGAIN_AFTER_MS = 1_000;

const KEY_BYTES = 32;
const ID_BYTES = 12;

/** A new key of this id, which nobody keeps yet. */
export const createKey = (id: string): TextKey => ({
  id,
  secret: randomBytes(KEY_BYTES).toString('base64url'),
});

function makeKeys(count: number): TextKey[] {
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
 * New keys, kept durably before they are handed out: in batches, the next one while half of the last
 * is left, so that nobody waits for the disk. A process leaves behind those that it did not use.
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
    const keys = makeKeys(batch);
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
    const isDue = pool.length < batch / 4 && performance.now() - failedAt > TRY_AGAIN_AFTER_MS;
    // Whoever finds none is told of what it fails with.
    if (isDue && !filling) refill().catch(() => undefined);
    return key;
  };
}
