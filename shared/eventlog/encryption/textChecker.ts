import { openTexts } from './openTexts.ts';
import { createErasureLookup } from '../reading/erasureLookup.ts';
import type { ProtectedStore } from './protectedStore.ts';
import type { StoredEvent } from '../../ports/eventStore.ts';

/**
 * Opens the texts of events, which no hash covers but by their commitments: tells why one can't be
 * had, undefined where all can, or are erased and their stream says so. Errors: `store_unavailable`.
 */
export function createTextChecker({
  keys,
  readStream,
}: Pick<ProtectedStore, 'keys' | 'readStream'>): (
  stored: StoredEvent,
) => Promise<string | undefined> {
  const saysErased = createErasureLookup({ readStream });

  return async (stored) => {
    const [readable] = await openTexts(keys, [stored]);
    const { unreadable, erased: emptied } = readable!;
    if (unreadable?.code === 'key_missing') return unreadable.message.replace(/\.$/, '');
    if (unreadable) return (unreadable.cause as Error).message;
    return emptied && !(await saysErased(stored.stream))
      ? 'the key of a text is destroyed, and no erasure of its stream says so'
      : undefined;
  };
}
