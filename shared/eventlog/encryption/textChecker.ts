import { decryptTextsInData } from './openTexts.ts';
import { addKeyIds } from './protectedJson.ts';
import { keysNamedBy } from './protectedStore.ts';
import { createErasureLookup } from '../reading/erasureLookup.ts';
import { isErasure } from '../eventTypes.ts';
import type { ProtectedStore } from './protectedStore.ts';
import type { StoredEvent } from '../../ports/eventStore.ts';
import { LIMITS } from '../../limits.ts';

type Sources = Pick<ProtectedStore, 'keys' | 'readStream'>;

/**
 * The first of some keys that exists although an erasure of the stream should have destroyed it. An
 * erasure that is not finished yet does not count.
 */
async function findKeyOfErased(
  { keys }: Pick<Sources, 'keys'>,
  stream: string,
  ids: ReadonlySet<string>,
): Promise<string | undefined> {
  const findLiveKey = async (): Promise<string | undefined> =>
    [...(await keys.examine([...ids]))].find(
      ([, state]) => state !== 'destroyed' && state !== 'lost',
    )?.[0];
  if (ids.size === 0 || (await findLiveKey()) === undefined) return undefined;
  const unfinished = await keys.listErasures(LIMITS.erasure.openErasures);
  // Keys are looked up again: the erasure may have been finished in between.
  return unfinished.some((open) => open.stream === stream) ? undefined : findLiveKey();
}

/**
 * Creates a check of events' texts, which hashes cover only through their commitments: it returns
 * why a text can't be read, or why it could still be read although its stream is erased; undefined
 * when all can, or are erased and their stream records the erasure. Throws `store_unavailable`.
 */
export function createTextChecker({
  keys,
  readStream,
}: Sources): (stored: StoredEvent) => Promise<string | undefined> {
  const { isErasedNow } = createErasureLookup({ readStream });

  return async (stored) => {
    const { stream, type, data } = stored;
    const named = new Set(isErasure(type) ? keysNamedBy(stored) : []);
    const [readable] = await decryptTextsInData(keys, [stored]);
    const { unreadable, erased: hasErasedText } = readable!;
    if (unreadable?.code === 'key_missing') return unreadable.message.replace(/\.$/, '');
    if (unreadable) return (unreadable.cause as Error).message;
    if (hasErasedText && !(await isErasedNow(stream)))
      return 'the key of a text is destroyed, but its stream records no erasure';
    if (hasErasedText) addKeyIds(data, named);
    const key = await findKeyOfErased({ keys }, stream, named);
    return key === undefined
      ? undefined
      : `its stream records its erasure, but the key ${key} exists: the key store was restored, or the erasure is none of the service's. See text-keys reconcile`;
  };
}
