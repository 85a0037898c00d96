import type { KeyStore } from '../ports/keyStore.ts';
import type { TextKey } from './protectedText.ts';

/** Keys by id; a key that was destroyed has the value undefined. */
export type FoundKeys = ReadonlyMap<string, TextKey | undefined>;

/** The keys of texts, unwrapped, as far as this process has them in memory. */
export interface Keyring extends Pick<KeyStore, 'beginErasure' | 'listErasures' | 'endErasure'> {
  /**
   * A key that nobody has used, kept durably before: none is waited for as a rule.
   * Errors: `store_unavailable`.
   */
  fresh(): TextKey | Promise<TextKey>;
  /**
   * The keys of these ids, at once where all are in memory.
   * Errors: `store_unavailable`, `key_missing` for one that was lost or whose master key is not here.
   */
  find(ids: ReadonlySet<string>): FoundKeys | Promise<FoundKeys>;
  /** Lets go of keys that were destroyed: no memory of this process holds them any more. */
  forget(ids: readonly string[]): void;
}
