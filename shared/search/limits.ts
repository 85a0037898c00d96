import { KIB } from '../lib/units.ts';

/** The fixed bounds of searching: a part of LIMITS. */
export const SEARCH_LIMITS = {
  /** Of the index of words, and of what is sought in it. */
  search: {
    /** Of an input or an output, from its beginning on: what comes later is not found. */
    textCharacters: 64 * KIB,
    /** Of a word: longer ones are the same as far as that. */
    wordCharacters: 64,
    /** Different ones of a turn, half of them the input's if need be: what comes later is not found. */
    wordsOfTurn: 2_000,
    /** Of what is sought. */
    queryCharacters: 256,
    /** Different ones that are sought at once. */
    queryWords: 16,
    /** Turns that are named for a session that was found, the first ones. */
    matches: 20,
    /** How long a search waits for the index. */
    waitMs: 2_000,
    /** Turns, and characters of their closed texts, that are indexed in one go. */
    turnsAtOnce: 64,
    charactersAtOnce: 512 * KIB,
    /** Turns still to be indexed that health counts. */
    countedTurns: 10_000,
    /** Sessions that a filter leaves, and turns of theirs, which are looked at without the index. */
    fewSessions: 2_500,
    turnsOfFew: 25_000,
    /** Pages of the index, of 4 KB, that are written in one go to take erased words out of it. */
    pagesAtOnce: 16,
    /** How often that begins at the most, so that erasures gather: each time the whole index is written anew. */
    forgetEveryMs: 30_000,
  },
} as const;
