import { LIMITS } from '../../limits.ts';
import type { Position } from '../../ports/eventStore.ts';
import type { KeyStore } from '../../ports/keyStore.ts';
import type { ReadModels } from '../../ports/readModels.ts';
import type { ErasureRow } from '../../readModels/tables.ts';

type Keys = Pick<KeyStore, 'find' | 'listErasures'>;
type NamedKeys = Pick<ErasureRow, 'stream' | 'key_ids'>;

/** Erasures examined with one query. */
const PAGE = 500;
/** Pages of one step, so that the other work of the process continues. */
const PAGES_OF_STEP = 4;
/** Streams that are reported. The check continues when fewer are left. */
const MAX_FOUND = 100;
/** A database of keys may be restored while services run. */
const CHECK_AGAIN_AFTER_MS = 3_600_000;

/** The keys of each stream that exist although an erasure names them as destroyed. */
async function findExisting(
  keys: Pick<KeyStore, 'find'>,
  erasures: readonly NamedKeys[],
): Promise<NamedKeys[]> {
  const ids = erasures.flatMap(({ key_ids }) => key_ids);
  if (ids.length === 0) return [];
  const states = await keys.find([...new Set(ids)]);
  return erasures.flatMap(({ stream, key_ids }) => {
    const existing = key_ids.filter((id) => typeof states.get(id) === 'object');
    return existing.length > 0 ? [{ stream, key_ids: existing }] : [];
  });
}

/**
 * The erasures, of some that are recorded, whose keys exist: the key store was restored from a
 * backup, or the erasure is forged. Erasures that are not finished are left out. Throws
 * `store_unavailable`.
 */
export async function findErasuresWithKeys(
  keys: Keys,
  erasures: readonly NamedKeys[],
): Promise<NamedKeys[]> {
  const existing = await findExisting(keys, erasures);
  if (existing.length === 0) return [];
  const unfinished = new Set(
    (await keys.listErasures(LIMITS.erasure.openErasures)).map(({ stream }) => stream),
  );
  // Looked up again: an erasure may have been finished in between.
  return findExisting(
    keys,
    existing.filter(({ stream }) => !unfinished.has(stream)),
  );
}

interface Sources {
  keys: Keys;
  readModels: Pick<ReadModels, 'listErasures' | 'listErasuresAfter'>;
}

/** A check of the keys of all erasures, a part at a time. */
interface RestoredKeysCheck {
  /** Checks the newest erasures. Throws `store_unavailable`. */
  checkNewest(): Promise<void>;
  /**
   * Checks the next erasures, and again those that were found. Goes on where the last step ended, or
   * failed with `store_unavailable`, and begins again an hour after it has checked all.
   */
  step(): Promise<void>;
  /** One sentence while keys of erased streams exist. */
  reason(): string | undefined;
}

/**
 * Creates a check whether keys exist that erasures had destroyed. No text of an erased stream is
 * decrypted in any case, so the check may take its time: a step examines up to 2,000 erasures.
 */
export function createRestoredKeysCheck(
  { keys, readModels }: Sources,
  now = (): number => performance.now(),
): RestoredKeysCheck {
  let namedKeys = new Map<string, NamedKeys>();
  let after: Position | undefined;
  let checkedAt: number | undefined;

  async function examine(rows: readonly ErasureRow[]): Promise<void> {
    for (const erasure of await findErasuresWithKeys(keys, rows))
      if (namedKeys.size < MAX_FOUND) namedKeys.set(erasure.stream, erasure);
  }

  async function checkNext(): Promise<void> {
    for (let page = 0; page < PAGES_OF_STEP && namedKeys.size < MAX_FOUND; page += 1) {
      const rows = await readModels.listErasuresAfter({ after, limit: PAGE });
      await examine(rows);
      // The page is read again after a failure, and when there was no room for all that was found.
      if (namedKeys.size === MAX_FOUND) return;
      after = rows.at(-1)?.position ?? after;
      if (rows.length < PAGE) {
        checkedAt = now();
        return;
      }
    }
  }

  return {
    async checkNewest() {
      await examine(await readModels.listErasures({ downTo: undefined, limit: PAGE }));
    },
    async step() {
      if (namedKeys.size > 0) {
        const remaining = await findErasuresWithKeys(keys, [...namedKeys.values()]);
        namedKeys = new Map(remaining.map((erasure) => [erasure.stream, erasure]));
      }
      if (checkedAt !== undefined) {
        if (now() - checkedAt < CHECK_AGAIN_AFTER_MS) return;
        [after, checkedAt] = [undefined, undefined];
      }
      await checkNext();
    },
    reason() {
      const [first] = namedKeys.keys();
      if (first === undefined) return undefined;
      const count = namedKeys.size < MAX_FOUND ? `${namedKeys.size}` : `${MAX_FOUND} or more`;
      return `Keys of erased streams exist, of ${count}; the first is ${first}. The key store was restored from a backup, or an erasure is not one of the service. Their texts stay closed. Stop the services and list the keys: text-keys reconcile.`;
    },
  };
}
