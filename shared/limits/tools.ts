import { KIB } from './units.ts';

/** The fixed bounds of what is reached through the network for others: a part of LIMITS. */
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
  },
} as const;
