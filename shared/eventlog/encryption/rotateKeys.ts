import { isTurnlogError } from '../../lib/errors/turnlogError.ts';
import type { MasterKeys } from './masterKeys.ts';
import type { KeyStore, WrappedKey } from '../../ports/keyStore.ts';

/** Keys that are wrapped anew in one commit. */
const PAGE = 500;

/** How far a rotation has come, in keys. */
export interface RotationProgress {
  looked_at: number;
  wrapped_anew: number;
  /** Keys that stay as they are, because their master key is not here or does not open them. */
  missing: number;
  /** Why, of the first one. */
  reason: string | undefined;
}

interface RotationOptions {
  store: KeyStore;
  masterKeys: MasterKeys;
  /** Ends it after a page. */
  signal: AbortSignal;
  onProgress: (state: RotationProgress) => void;
}

/**
 * Wraps every key anew under the first master key, page by page, beside whoever uses the store: a
 * key that is destroyed meanwhile stays so. What it has done stays done, and is passed over by the
 * next one.
 * Errors: `store_unavailable`.
 */
export async function rotateKeys({ store, masterKeys, signal, onProgress }: RotationOptions) {
  const [current] = masterKeys.ids;
  const done: RotationProgress = { looked_at: 0, wrapped_anew: 0, missing: 0, reason: undefined };

  function anew(key: WrappedKey): WrappedKey[] {
    if (key.master_key_id === current) return [];
    try {
      return [masterKeys.wrap(masterKeys.unwrap(key))];
    } catch (error) {
      if (!isTurnlogError(error, 'key_missing')) throw error;
      done.missing += 1;
      done.reason ??= error.message;
      return [];
    }
  }

  for (let after: string | undefined; !signal.aborted;) {
    const page = await store.list({ limit: PAGE, ...(after !== undefined && { after }) });
    const keys = page.flatMap(anew);
    if (keys.length > 0) await store.rewrap(keys);
    done.looked_at += page.length;
    done.wrapped_anew += keys.length;
    onProgress(done);
    if (page.length < PAGE) break;
    after = page.at(-1)?.key_id;
  }
  return done;
}
