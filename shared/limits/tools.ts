import { KIB, MIB } from './units.ts';

/** The fixed bounds of tools, and of what is fetched for others: a part of LIMITS. */
export const TOOL_LIMITS = {
  /** Of a request to an address that somebody else names. */
  web: {
    urlChars: 8_192,
    /** Status line and headers. */
    headerBytes: 16 * KIB,
    /** Of a name; the others are not tried. */
    addresses: 16,
    /** Until a name server has answered. */
    resolveMs: 5_000,
    /** Of a page that a model reads, as unpacked. */
    pageBytes: MIB,
    /** From the first look-up to the last byte. */
    pageMs: 20_000,
    redirects: 5,
    /** Pages that are read at a time, in one process and of one account. */
    pages: 16,
    pagesOfAccount: 8,
    /** How long a page waits for its turn. */
    pageWaitMs: 10_000,
    /** Pages that are made text at a time, each in a thread of its own. */
    conversions: 2,
    htmlMs: 5_000,
  },
  /** Of what agents may call. */
  tool: {
    /** Of a result, in UTF-8. */
    resultBytes: 64 * KIB,
    /** That a model is offered. */
    functions: 128,
    /** Of all that a model is offered: it is recorded with each turn. */
    definitionBytes: 256 * KIB,
  },
} as const;
