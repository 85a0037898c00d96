import { KIB, MIB } from '../lib/units.ts';

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
  /** Of MCP servers. */
  mcp: {
    servers: 32,
    /** Of one server; the others are not offered. */
    tools: 128,
    /** Of a tool's schema as JSON, and how deep it may nest. */
    schemaBytes: 32 * KIB,
    schemaDepth: 32,
    descriptionChars: 4_096,
    /** Of one message of a server. */
    messageBytes: 4 * MIB,
    /** Until a server that was started, or called, has answered. */
    connectMs: 30_000,
    listMs: 10_000,
    /** How long a run waits for a server whose tools nobody knows yet. */
    firstListMs: 5_000,
    /** Between two looks at a server's tools, which also show that it is there. */
    refreshMs: 60_000,
    /** The longest pause before a server that was lost is tried again. */
    retryMs: 60_000,
    /** How long arguments may take to be compared with a schema. */
    checkMs: 250,
    /** How long a schema may take to be read, and those of a list all together. */
    schemaMs: 1_000,
    schemasMs: 5_000,
    /** Of one server, and of one account with it. */
    calls: 16,
    callsOfAccount: 8,
    callWaitMs: 10_000,
    /** For how long a server that is told to end may go on. */
    closeMs: 2_000,
    /** Of what a server that could not be started wrote last, in the log. */
    quotedChars: 500,
  },
} as const;
