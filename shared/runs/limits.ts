import { KIB, MIB } from '../lib/units.ts';

/** The fixed bounds of runs, models and tools: a part of LIMITS. */
export const RUN_LIMITS = {
  /** Of a run. */
  run: {
    /** Model calls that end in tool calls. */
    rounds: 8,
    /** Tool calls of a turn: each is an event for ever. */
    toolCalls: 128,
    /** Of one answer that are made at a time. */
    parallelToolCalls: 8,
    /** Of all that a turn's tool calls record; the last result may go beyond it. */
    toolCallBytes: 2 * MIB,
    /** So much of it needs no room beside the prompt's (MAX_PROMPT_BYTES). */
    toolCallBytesUnheld: 64 * KIB,
    /** Runs that have no place yet, of all accounts; half of them of one. */
    waiting: 4_000,
    /** Runs that wait for another one of their session. */
    waitingOfSession: 100,
    /** Sessions that are read at a time, half of them of one account. */
    sessionReads: 8,
    /** Of a summary of older turns; what is longer is none. */
    summaryTokens: 1_024,
    summaryChars: 16_384,
    /** Turns of a session until it is tried again to sum its older turns up. */
    compactionPause: 16,
    /** How long the tokens of one text may take to be counted, the wait for others included. */
    countMs: 15_000,
  },
  /** Of turns that clients follow as they happen. */
  stream: {
    /** Streams that are open, half of them of one account. */
    open: 4_000,
    /** Characters of texts that are kept for those who follow: more than that is left to the record. */
    liveChars: 8 * MIB,
    /** How long the text of a turn that has ended is kept for those who are behind. */
    lingerMs: 1_000,
    /** Of a text that goes to another process in one message: below 8 kB in base64, at four bytes each. */
    messageChars: 1_350,
    /** Between two batches that a turn sends to a process, and messages of one. */
    batchMs: 50,
    batchMessages: 8,
    /** Messages to other processes that wait for the database. */
    messages: 2_000,
    /** Turns that are sent to processes. */
    senders: 1_000,
    /** For how long a process is sent a turn that it has asked for. */
    interestMs: 30_000,
    /** When nothing is heard of a turn for so long, the record is looked at. */
    silentMs: 5_000,
    /** How often the record is looked at for a turn that another process runs. */
    lookMs: 1_000,
    /** How long beyond its deadline a turn is followed whose end nobody has recorded. */
    overdueMs: 60_000,
  },
  /** Of what a model provider answers. */
  model: {
    /** Status line and headers. */
    headerBytes: 16 * KIB,
    /** An event holds 1 MiB: what is longer could not be recorded. */
    answerBytes: 2 * MIB,
    /** Answers that are being read at one time, in one process. */
    answersBytes: 64 * MIB,
    /** Of an answer that comes as a stream, with what stands around each piece of its text. */
    streamBytes: 32 * MIB,
    /** JSON values in an answer: millions of tiny ones take a hundred times their bytes in memory. */
    answerValues: 20_000,
    /** What is read of an error; the rest is left. */
    errorBytes: 64 * KIB,
    /** What the log quotes of an error. */
    quotedChars: 200,
    /** An answer's id, model and finish reason; what is longer is cut. */
    labelChars: 256,
    /** Of a tool call. */
    functionNameChars: 256,
    callIdChars: 1_024,
    argumentsChars: 256 * KIB,
    /** That a model of the models file names. */
    fallbacks: 8,
    /** That a call can take, by the provider's count. */
    tokens: 1_000_000_000,
  },
  /** Of an agent's JSON Schema for its answers, which a client wrote. */
  responseFormat: {
    /** As JSON; each turn's beginning holds it. */
    schemaBytes: 32 * KIB,
    /** Objects and lists within each other. */
    schemaDepth: 32,
    /** To compile it, or to check an answer; a pattern could take for ever. */
    checkMs: 1_000,
    /** For the checks of others that come first. */
    waitMs: 15_000,
    /** Of the thread that checks. */
    heapMb: 64,
    /** Schemas that are kept compiled, by their length. */
    cacheChars: MIB,
  },
  /** Of one arithmetic expression that a model asks for. */
  arithmetic: {
    expressionChars: 1_000,
    /** Parentheses, signs and powers within each other. */
    depth: 100,
    /** Of a numerator and of a denominator; a longer one is taken for its first 58 digits. */
    exactDigits: 3_000,
    /** Of a result that is written out. */
    resultDigits: 1_000,
    /** The largest number whose factorial is calculated. */
    factorial: 1_000,
    /** In units of about half a millisecond: what one inexact function, such as a sine, takes. */
    work: 40,
  },
  /** Of the model inside the process that needs no provider. */
  offlineModel: {
    bodyBytes: 32 * MIB,
    /** Of an input: where a wish for a function is looked for. */
    searchedChars: 2_000,
    /** Of an input that is quoted in the answer. */
    quotedChars: 4_000,
  },
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
