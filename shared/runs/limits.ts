import { KIB, MIB } from '../lib/units.ts';

/** The fixed limits of runs, models and tools: a part of LIMITS. */
export const RUN_LIMITS = {
  /** Of a run. */
  run: {
    /** Model calls that end in tool calls. */
    rounds: 8,
    /** Tool calls of a turn: each is a permanent event. */
    toolCalls: 128,
    /** Concurrent tool calls of one answer. */
    parallelToolCalls: 8,
    /** Recorded bytes of a turn's tool calls; the last result may exceed it. */
    toolCallBytes: 2 * MIB,
    /** The part of it that needs no reservation beside the prompt (MAX_PROMPT_BYTES). */
    toolCallBytesUnheld: 64 * KIB,
    /** Waiting runs of all accounts; half of them of one. */
    waiting: 4_000,
    /** Runs that wait for another run of their session. */
    waitingOfSession: 100,
    /** Concurrent session reads, half of them of one account. */
    sessionReads: 8,
    /** Of a summary of older turns; a longer one is rejected. */
    summaryTokens: 1_024,
    summaryChars: 16_384,
    /** Turns of a session between a failed compaction and the next attempt. */
    compactionPause: 16,
    /** Time limit of counting the tokens of one text, including the wait for other counts. */
    countMs: 15_000,
  },
  /** Of turns that clients follow live. */
  stream: {
    /** Open streams, half of them of one account. */
    open: 4_000,
    /** Buffered characters for followers; beyond it, they read the record. */
    liveChars: 8 * MIB,
    /** How long the text of an ended turn stays buffered for followers that are behind. */
    lingerMs: 1_000,
    /** Characters of one message to another process: below 8 kB in base64, at four bytes each. */
    messageChars: 1_350,
    /** Interval between batches that a turn sends to a process, and messages of a batch. */
    batchMs: 50,
    batchMessages: 8,
    /** Messages to other processes waiting for the database. */
    messages: 2_000,
    /** Turns that are sent to processes. */
    senders: 1_000,
    /** How long a process receives a turn after it announced its interest. */
    interestMs: 30_000,
    /** After this silence of a turn, the record is read. */
    silentMs: 5_000,
    /** Poll interval of the record for a turn of another process. */
    lookMs: 1_000,
    /** How long a turn without a recorded end is followed beyond its deadline. */
    overdueMs: 60_000,
  },
  /** Of responses of model providers. */
  model: {
    /** Status line and headers. */
    headerBytes: 16 * KIB,
    /** An event holds 1 MiB: a longer answer could not be recorded. */
    answerBytes: 2 * MIB,
    /** Answers read concurrently in one process. */
    answersBytes: 64 * MIB,
    /** Of a streamed answer, including the overhead around each piece of text. */
    streamBytes: 32 * MIB,
    /** JSON values in an answer: millions of tiny ones take a hundred times their bytes in memory. */
    answerValues: 20_000,
    /** Bytes of an error that are read. */
    errorBytes: 64 * KIB,
    /** Characters of an error that are logged. */
    quotedChars: 200,
    /** Of an answer's id, model and finish reason; longer ones are truncated. */
    labelChars: 256,
    /** Of a tool call. */
    functionNameChars: 256,
    callIdChars: 1_024,
    argumentsChars: 256 * KIB,
    /** Fallbacks of a model in the models file. */
    fallbacks: 8,
    /** Of one call, by the provider's count. */
    tokens: 1_000_000_000,
  },
  /** Of an agent's JSON Schema for its answers, which a client sends. */
  responseFormat: {
    /** As JSON; each turn_started event holds it. */
    schemaBytes: 32 * KIB,
    /** Nested objects and arrays. */
    schemaDepth: 32,
    /** To compile it, or to check an answer: a pattern may never end. */
    checkMs: 1_000,
    /** The longest wait for earlier checks. */
    waitMs: 15_000,
    /** Of the thread that checks. */
    heapMb: 64,
    /** Cached compiled schemas, by their length. */
    cacheChars: MIB,
  },
  /** Of one arithmetic expression of a model. */
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
    /** Characters of an input that are searched for a function request. */
    searchedChars: 2_000,
    /** Characters of an input that the answer quotes. */
    quotedChars: 4_000,
  },
  /** Of a request to an address from a client or a model. */
  web: {
    urlChars: 8_192,
    /** Status line and headers. */
    headerBytes: 16 * KIB,
    /** Addresses tried per host name. */
    addresses: 16,
    /** Time limit of a name lookup. */
    resolveMs: 5_000,
    /** Of a page that a model reads, uncompressed. */
    pageBytes: MIB,
    /** From the first lookup to the last byte. */
    pageMs: 20_000,
    redirects: 5,
    /** Pages read concurrently, in one process and of one account. */
    pages: 16,
    pagesOfAccount: 8,
    /** The longest wait of a page for a permit. */
    pageWaitMs: 10_000,
    /** Pages converted to text concurrently, each in its own thread. */
    conversions: 2,
    htmlMs: 5_000,
  },
  /** Of the tools of agents. */
  tool: {
    /** Of a result, in UTF-8. */
    resultBytes: 64 * KIB,
    /** Functions that a model is offered. */
    functions: 128,
    /** Of all offered functions: they are recorded with each turn. */
    definitionBytes: 256 * KIB,
  },
  /** Of MCP servers. */
  mcp: {
    servers: 32,
    /** Tools of one server; further ones are not offered. */
    tools: 128,
    /** Of a tool's schema as JSON, and its depth. */
    schemaBytes: 32 * KIB,
    schemaDepth: 32,
    descriptionChars: 4_096,
    /** Of one message of a server. */
    messageBytes: 4 * MIB,
    /** Until a started or called server has answered. */
    connectMs: 30_000,
    listMs: 10_000,
    /** How long a run waits for a server whose tools are not listed yet. */
    firstListMs: 5_000,
    /** Interval between listings of a server's tools, which also check its health. */
    refreshMs: 60_000,
    /** The longest delay before a lost server is tried again. */
    retryMs: 60_000,
    /** Time limit of validating arguments against a schema. */
    checkMs: 250,
    /** Time limits of reading one schema, and all schemas of a list. */
    schemaMs: 1_000,
    schemasMs: 5_000,
    /** Concurrent calls of one server, and of one account to it. */
    calls: 16,
    callsOfAccount: 8,
    callWaitMs: 10_000,
    /** How long a server may take to stop. */
    closeMs: 2_000,
    /** Characters of the last output of a server that did not start, in the log. */
    quotedChars: 500,
  },
} as const;
