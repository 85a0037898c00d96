import type { KeyStore } from '../ports/keyStore.ts';
import type { ReadModels } from '../ports/readModels.ts';

/** The newest erasures; some may have no key, or not be at their end. */
const LOOKED_AT = 100;

interface Sources {
  keys: Pick<KeyStore, 'find' | 'listErasures'>;
  readModels: Pick<ReadModels, 'listErasures'>;
}

/**
 * One sentence where keys that were destroyed may be back: the key store does not know those of the
 * newest erasure as destroyed, so it is older than that. Undefined where all is well.
 */
export async function keysBack({ keys, readModels }: Sources): Promise<string | undefined> {
  const rows = await readModels.listErasures({ downTo: undefined, limit: LOOKED_AT });
  const begun = new Set((await keys.listErasures(LOOKED_AT)).map(({ stream }) => stream));
  const newest = rows.find(({ stream, key_ids }) => key_ids.length > 0 && !begun.has(stream));
  if (!newest) return undefined;
  const found = await keys.find(newest.key_ids);
  if (newest.key_ids.every((id) => found.get(id) === 'destroyed')) return undefined;
  return `The key store is older than the erasure of ${newest.stream}: it was restored, and keys that were destroyed may be back. Stop the services and destroy them again: text-keys reconcile.`;
}
