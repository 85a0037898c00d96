import { isTurnlogError } from '../../lib/errors/turnlogError.ts';
import type { MasterKeys } from './masterKeys.ts';
import type { KeyStore, WrappedKey } from '../../ports/keyStore.ts';

/** Keys that are rewrapped in one transaction. */
const PAGE = 500;

/** The progress of a rotation, in keys. */
export interface RotationProgress {
  looked_at: number;
  wrapped_anew: number;
  /** Keys left unchanged because their master key is unavailable or does not unwrap them. */
  missing: number;
  /** The reason for the first of them. */
  reason: string | undefined;
}

interface RotationOptions {
  store: KeyStore;
  masterKeys: MasterKeys;
  /** Ends the rotation after the current page. */
  signal: AbortSignal;
  onProgress: (state: RotationProgress) => void;
}

/**
 * Rewraps every key under the first master key, page by page, while the store is in use: keys
 * destroyed meanwhile stay destroyed. An interrupted rotation can be repeated and skips finished
 * keys. Throws `store_unavailable`.
 */
export async function rotateKeys({ store, masterKeys, signal, onProgress }: RotationOptions) {
  const [current] = masterKeys.ids;
  const progress: RotationProgress = {
    looked_at: 0,
    wrapped_anew: 0,
    missing: 0,
    reason: undefined,
  };

  function rewrap(key: WrappedKey): WrappedKey[] {
    if (key.master_key_id === current) return [];
    try {
      return [masterKeys.wrap(masterKeys.unwrap(key))];
    } catch (error) {
      if (!isTurnlogError(error, 'key_missing')) throw error;
      progress.missing += 1;
      progress.reason ??= error.message;
      return [];
    }
  }

  for (let after: string | undefined; !signal.aborted;) {
    const page = await store.list({ limit: PAGE, ...(after !== undefined && { after }) });
    const keys = page.flatMap(rewrap);
    if (keys.length > 0) await store.rewrap(keys);
    progress.looked_at += page.length;
    progress.wrapped_anew += keys.length;
    onProgress(progress);
    if (page.length < PAGE) break;
    after = page.at(-1)?.key_id;
  }
  return progress;
}
