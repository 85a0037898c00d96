import { setImmediate as yieldToOthers } from 'node:timers/promises';
import { isTurnlogError } from '../lib/errors/turnlogError.ts';
import { TextErased, createTextOpener, keyIdsOf } from '../eventlog/encryption/closedText.ts';
import type { Keyring, ReadingKeys } from '../eventlog/encryption/keyring.ts';
import { InvalidCiphertext } from '../eventlog/encryption/protectedText.ts';
import { sessionStream } from '../eventlog/streams.ts';
import type { EndedTurn } from './turnIndex.ts';
import { extractPrefixes, extractWords } from './words.ts';
import { createWordTokenizer } from './wordTokens.ts';

/** The tokens that are computed in one step, in a few milliseconds: a long turn has thousands. */
const TERMS_AT_ONCE = 256;

const textsOf = ({ input, output }: EndedTurn): string[] =>
  output === null ? [input] : [input, output];

/** Loads the keys of these turns together. Throws `store_unavailable`. */
export async function loadKeysOf(
  keys: Pick<ReadingKeys, 'find'>,
  turns: readonly EndedTurn[],
): Promise<void> {
  try {
    await keys.find(keyIdsOf(turns.flatMap(textsOf)));
  } catch (error) {
    // The turn that lacks its key finds out itself.
    if (!isTurnlogError(error, 'key_missing')) throw error;
  }
}

/**
 * Creates a function that computes the tokens of turns. It caches keys and words, so discard it
 * soon. The tokens are empty for a turn that is being erased, and undefined for a turn whose texts
 * can't be decrypted because their key is lost or they were changed.
 */
export function createTurnTokenizer(keys: ReadingKeys & Pick<Keyring, 'ensureKey'>) {
  const byAccount = new Map<string, Awaited<ReturnType<typeof createWordTokenizer>>>();

  async function tokensOf(turn: EndedTurn) {
    const { account_id, session_id } = turn;
    if (!byAccount.has(account_id))
      byAccount.set(account_id, await createWordTokenizer(keys, account_id));
    const tokenOf = byAccount.get(account_id);
    const texts = textsOf(turn);
    const open = await createTextOpener(keys, sessionStream(session_id), texts);
    if (!tokenOf) return [];
    const words = extractWords(texts.map(open));
    const tokens = new Set<string>();
    for (const term of [...words, ...extractPrefixes(words)]) {
      tokens.add(tokenOf(term));
      if (tokens.size % TERMS_AT_ONCE === 0) await yieldToOthers();
    }
    return [...tokens];
  }

  return (turn: EndedTurn): Promise<string[] | undefined> =>
    tokensOf(turn).catch((error: unknown) => {
      if (error instanceof TextErased) return [];
      if (!(error instanceof InvalidCiphertext) && !isTurnlogError(error, 'key_missing'))
        throw error;
      return undefined;
    });
}
