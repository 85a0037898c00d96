import { setImmediate as yieldToOthers } from 'node:timers/promises';
import { isTurnlogError } from '../lib/errors/turnlogError.ts';
import { TextErased, createTextOpener, keyIdsOf } from '../eventlog/encryption/encryptedText.ts';
import type { Keyring, ReadingKeys } from '../eventlog/encryption/keyring.ts';
import { InvalidCiphertext } from '../eventlog/encryption/protectedText.ts';
import { sessionStream } from '../eventlog/streams.ts';
import type { RecentTexts } from './recentTexts.ts';
import type { EndedTurn } from './turnIndex.ts';
import { extractPrefixes, extractWords } from './words.ts';
import { createWordTokenizer } from './wordTokens.ts';

/** The tokens that are computed in one step, in a few milliseconds: a long turn has thousands. */
const TERMS_AT_ONCE = 256;

async function extractInSteps(texts: readonly string[]): Promise<Set<string>> {
  const steps = extractWords(texts);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    await yieldToOthers();
  }
}

const textsOf = ({ input, output }: EndedTurn): string[] =>
  output === null ? [input] : [input, output];

/** The keys of texts, and the texts that are known without them. */
export type IndexKeys = ReadingKeys &
  Pick<Keyring, 'ensureKey'> & { recentTexts?: Pick<RecentTexts, 'has' | 'take'> };

/** Loads the keys of these turns together. Throws `store_unavailable`. */
export async function loadKeysOf(
  { find, recentTexts }: Pick<IndexKeys, 'find' | 'recentTexts'>,
  turns: readonly EndedTurn[],
): Promise<void> {
  const unknownTextsOf = (turn: EndedTurn): string[] =>
    textsOf(turn).filter((text) => !recentTexts?.has(sessionStream(turn.session_id), text));
  try {
    await find(keyIdsOf(turns.flatMap(unknownTextsOf)));
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
export function createTurnTokenizer(keys: IndexKeys) {
  const byAccount = new Map<string, Awaited<ReturnType<typeof createWordTokenizer>>>();

  async function tokensOf(turn: EndedTurn) {
    const { account_id, session_id } = turn;
    if (!byAccount.has(account_id))
      byAccount.set(account_id, await createWordTokenizer(keys, account_id));
    const tokenOf = byAccount.get(account_id);
    const stream = sessionStream(session_id);
    const texts = textsOf(turn).map((closed) => ({
      closed,
      plain: keys.recentTexts?.take(stream, closed),
    }));
    const unknown = texts.flatMap(({ closed, plain }) => (plain === undefined ? [closed] : []));
    const open = await createTextOpener(keys, stream, unknown);
    const isErased = unknown.length < texts.length && (await keys.isErased(stream));
    if (!tokenOf || isErased) return [];
    const words = await extractInSteps(texts.map(({ closed, plain }) => plain ?? open(closed)));
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
