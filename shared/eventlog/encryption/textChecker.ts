import { openTexts } from './openTexts.ts';
import { createErasureLookup } from '../reading/erasureLookup.ts';
import type { ProtectedStore } from './protectedStore.ts';
import type { StoredEvent } from '../../ports/eventStore.ts';

/**
 * Creates a check of events' texts, which hashes cover only through their commitments: it returns
 * why a text can't be read; undefined when all can, or are erased and their stream records the
 * erasure. Throws `store_unavailable`.
 */
export function createTextChecker({
  keys,
  readStream,
}: Pick<ProtectedStore, 'keys' | 'readStream'>): (
  stored: StoredEvent,
) => Promise<string | undefined> {
  const isErased = createErasureLookup({ readStream });

  return async (stored) => {
    const [readable] = await openTexts(keys, [stored]);
    const { unreadable, erased: hasErasedText } = readable!;
    if (unreadable?.code === 'key_missing') return unreadable.message.replace(/\.$/, '');
    if (unreadable) return (unreadable.cause as Error).message;
    return hasErasedText && !(await isErased(stored.stream))
      ? 'the key of a text is destroyed, but its stream records no erasure'
      : undefined;
  };
}
