import type { Keyring, KeyState } from '../eventlog/encryption/keyring.ts';
import { forEachCiphertext } from '../eventlog/encryption/protectedJson.ts';
import { InvalidCiphertext, keyIdOf, openText } from '../eventlog/encryption/protectedText.ts';
import { streamId, streamKind } from '../eventlog/streams.ts';
import { wordsKeyId } from '../search/wordTokens.ts';

/**
 * Keys of a stream that none of its ciphertexts names. The key of an account's search words is
 * erased with the account.
 */
const unnamedKeysOf = (stream: string): string[] =>
  streamKind(stream) === 'account' ? [wordsKeyId(streamId(stream))] : [];

/** The keys that an erasure of a stream destroys, as far as its events were read. */
export interface OwnKeys {
  /** Reads the ciphertexts of events. Throws `store_unavailable`. */
  add(events: readonly { data: string }[]): Promise<void>;
  /** Reads the states of keys that an earlier read has found. Throws `store_unavailable`. */
  examine(ids: readonly string[]): Promise<void>;
  /**
   * The keys of the stream: those that decrypt one of its texts, and those that are destroyed or
   * lost, which an erasure only records as destroyed.
   */
  own: ReadonlySet<string>;
  /** Those of the stream's keys that exist. */
  live: ReadonlySet<string>;
  /** Those of the stream's keys that the key store has never held, or held before it was restored. */
  lost: ReadonlySet<string>;
  /** Keys that ciphertexts name but that may be another stream's, and why. */
  doubtful: ReadonlyMap<string, string>;
}

const LOCKED = 'its master key is unavailable';
const FOREIGN = 'it decrypts no text of the stream';

/**
 * Finds the keys of a stream. Neither hashes nor the transparency log cover which key a ciphertext
 * names: a writer to the log could name the key of another stream, which an erasure
 * would then destroy. A ciphertext that the key decrypts for this stream proves that it is its own.
 */
export function createOwnKeys(keys: Pick<Keyring, 'examine'>, stream: string): OwnKeys {
  const own = new Set<string>();
  const live = new Set<string>();
  const lost = new Set<string>();
  const doubtful = new Map<string, string>();
  const states = new Map<string, KeyState>();
  let unnamed = unnamedKeysOf(stream);

  async function examine(ids: readonly string[]): Promise<void> {
    const unknown = ids.filter((id) => !states.has(id));
    if (unknown.length === 0) return;
    for (const [id, state] of await keys.examine(unknown)) {
      states.set(id, state);
      if (state === 'lost') lost.add(id);
      if (state === 'destroyed' || state === 'lost') own.add(id);
      else doubtful.set(id, state === 'locked' ? LOCKED : FOREIGN);
    }
  }

  function addOwn(id: string): void {
    own.add(id);
    live.add(id);
    doubtful.delete(id);
  }

  function tryToOpen(box: string, sha256: string): void {
    const id = keyIdOf(box);
    const key = states.get(id);
    if (own.has(id) || typeof key !== 'object') return;
    try {
      openText({ box, sha256 }, key, stream);
      addOwn(id);
    } catch (error) {
      if (!(error instanceof InvalidCiphertext)) throw error;
    }
  }

  return {
    own,
    live,
    lost,
    doubtful,
    examine,
    async add(events) {
      const ids = new Set(unnamed);
      for (const { data } of events) forEachCiphertext(data, (box) => void ids.add(keyIdOf(box)));
      await examine([...ids]);
      // Their ids are derived from the stream's name.
      for (const id of unnamed) if (typeof states.get(id) === 'object') addOwn(id);
      unnamed = [];
      for (const { data } of events) forEachCiphertext(data, tryToOpen);
    },
  };
}
