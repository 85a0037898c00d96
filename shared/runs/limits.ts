import { KIB, MIB } from '../lib/units.ts';

/** Fixed limits of runs, models and tools, part of LIMITS. */
export const RUN_LIMITS = {
  /** Limits of a run. */
  run: {
    /**
     * Rounds of tool calls per turn.
     * @beyond 502
     */
    rounds: 8,
    /**
     * Tool calls per turn.
     * @beyond 502 before these calls
     */
    toolCalls: 128,
    /** Concurrent tool calls from one answer. */
    parallelToolCalls: 8,
    /**
     * Recorded bytes of a turn's tool calls. The last result may exceed this limit.
     * @beyond 502
     */
    toolCallBytes: 2 * MIB,
    /**
     * The part of these bytes that needs no reservation in addition to the prompt
     * (MAX_PROMPT_BYTES).
     */
    toolCallBytesUnheld: 64 * KIB,
    /**
     * Bytes of a prompt.
     * @beyond older turns omitted
     */
    promptBytes: 4 * MIB,
    /**
     * Messages of older turns.
     * @beyond older turns omitted
     */
    promptMessages: 8_192,
    /**
     * Waiting runs of all accounts. One account may have half of them.
     * @beyond 429/503
     */
    waiting: 4_000,
    /**
     * Runs waiting for their session.
     * @beyond 409 `session_busy`
     */
    waitingOfSession: 100,
    /** Tokens of a summary of older turns. A longer summary is rejected. */
    summaryTokens: 1_024,
    summaryChars: 16_384,
    /**
     * Turns without compaction after a failed one.
     * @beyond next attempt
     */
    compactionPause: 16,
    /**
     * Time to count a text's tokens.
     * @beyond 429/503
     */
    countMs: 15_000,
  },
  /** Limits for turns that clients follow live. */
  stream: {
    /**
     * Open streams. One account may have half of them.
     * @beyond 429/503
     */
    open: 4_000,
    /**
     * Characters buffered for followers. Beyond this limit, followers read the recorded turn.
     * @beyond followers read the recorded turn
     */
    liveChars: 8 * MIB,
    /** Text that arrives within this time reaches followers as one part. */
    coalesceMs: 20,
    /** How long the text of an ended turn stays buffered for slow followers. */
    lingerMs: 1_000,
    /**
     * Characters per message to another process. At four bytes each, this is less than 8 kB in
     * base64.
     */
    messageChars: 1_350,
    /** Interval between batches that a turn sends to a process, and messages per batch. */
    batchMs: 50,
    batchMessages: 8,
    /** Messages to other processes waiting for the database. */
    messages: 2_000,
    /** Senders of turns to other processes. */
    senders: 1_000,
    /** How long a process receives a turn after it last requested it. */
    interestMs: 30_000,
    /** After a turn has been silent for this long, its record is read. */
    silentMs: 5_000,
    /** Poll interval for the record of a turn in another process. */
    lookMs: 1_000,
    /** How long a turn without a recorded end is followed beyond its deadline. */
    overdueMs: 60_000,
  },
  /** Limits of responses from model providers. */
  model: {
    /** Bytes of the status line and headers. */
    headerBytes: 16 * KIB,
    /**
     * Bytes of an answer. An event holds 1 MiB, so a longer answer could not be recorded.
     * @beyond 502 `model_error`
     */
    answerBytes: 2 * MIB,
    /** Bytes of a streamed answer, including the overhead of each piece of text. */
    streamBytes: 32 * MIB,
    /**
     * JSON values in an answer. Millions of tiny values take a hundred times their size in memory.
     * @beyond 502 `model_error`
     */
    answerValues: 20_000,
    /** JSON values in an event of a streamed answer, which is read in one step. */
    eventValues: 2_000,
    /** Bytes read of an error response. */
    errorBytes: 64 * KIB,
    /** Characters of an answer's id, model and finish reason. Longer values are truncated. */
    labelChars: 256,
    /** Characters of a function name in a tool call. */
    functionNameChars: 256,
    callIdChars: 1_024,
    /**
     * Arguments of a tool call.
     * @beyond 502 `model_error`
     */
    argumentsChars: 256 * KIB,
    /**
     * A provider's own fields of a tool call, as JSON. Longer or deeper ones are neither recorded nor
     * sent back.
     */
    callFieldsChars: 64 * KIB,
    callFieldsDepth: 16,
    /** Characters of an answer's reasoning. The rest is dropped. */
    reasoningChars: 128 * KIB,
    /** Models of a provider that are offered where no models file names the models. */
    listedModels: 1_000,
    /**
     * Accounts per provider whose failed calls are counted. Beyond this number, the account that
     * called least recently is forgotten, and may call again.
     */
    failingAccounts: 1_000,
    /** Fallbacks of a model in the models file. */
    fallbacks: 8,
    /** Tokens of one call according to the provider. */
    tokens: 1_000_000_000,
  },
  /** Limits of an agent's JSON Schema for answers, which a client sends. */
  responseFormat: {
    /** Bytes of the schema as JSON. Each turn_started event contains the schema. */
    schemaBytes: 32 * KIB,
    /** Nested objects and arrays. */
    schemaDepth: 32,
    /** Classes of characters with many ranges in the patterns of a schema. */
    patternClasses: 500,
    /**
     * Time to compile a schema or check an answer.
     * @beyond schema 400, answer 502
     */
    checkMs: 1_000,
    /**
     * Longest wait for earlier checks.
     * @beyond schema 429/503, answer 502
     */
    waitMs: 15_000,
    /** Heap of the checking thread. */
    heapMb: 64,
    /** Total length of cached compiled schemas. */
    cacheChars: MIB,
  },
  /** Threads for checks and comparisons whose duration can't be known in advance. */
  slowWork: {
    /** Threads per kind of work. Accounts with slow work leave one of them to the others. */
    threads: 2,
    /** The processor time from which work counts as slow. */
    slowMs: 100,
    /** How long an account counts as slow after slow work. */
    slowForMs: 60_000,
  },
  /** Limits of one arithmetic expression from a model. */
  arithmetic: {
    /**
     * Length of an expression.
     * @beyond error for the model
     */
    expressionChars: 1_000,
    /**
     * Nesting of parentheses, signs and powers.
     * @beyond error for the model
     */
    depth: 100,
    /**
     * Digits of a numerator or denominator. Longer numbers are rounded to 58 digits.
     * @beyond approximate result
     */
    exactDigits: 3_000,
    /** Digits of a printed result. */
    resultDigits: 1_000,
    /** The largest number whose factorial is calculated. */
    factorial: 1_000,
    /**
     * Work per expression, in half milliseconds. An inexact function such as a sine
     * takes one unit.
     * @beyond error for the model
     */
    work: 40,
  },
  /** Limits of the built-in model, which needs no provider. */
  offlineModel: {
    bodyBytes: 32 * MIB,
    /** Characters of an input searched for a function request. */
    searchedChars: 2_000,
    /** Characters of an input that the answer quotes. */
    quotedChars: 4_000,
    /** Characters of tool results in an answer, and of the texts of a JSON answer: more are cut. */
    answerChars: 64 * KIB,
    /** Milliseconds before each word of a stream; less for an answer that would take `answerMs`. */
    wordMs: 20,
    answerMs: 5_000,
    /** Milliseconds before each word with `/slow`. */
    slowWordMs: 250,
    /** The most that `/slow` may ask for. */
    longestPauseMs: 10_000,
  },
  /** Limits of requests to addresses from clients or models. */
  web: {
    urlChars: 8_192,
    /** Bytes of the status line and headers. */
    headerBytes: 16 * KIB,
    /** Responses with a status 1xx to one request, also of model providers and MCP servers. */
    informationalResponses: 16,
    /** Addresses tried per host name. */
    addresses: 16,
    /** Time limit of a name lookup. */
    resolveMs: 5_000,
    /**
     * Decompressed bytes of a page.
     * @beyond truncated, with a note
     */
    pageBytes: MIB,
    /**
     * Time per page.
     * @beyond error for the model
     */
    pageMs: 20_000,
    redirects: 5,
    /**
     * Concurrent pages per process (account: 8).
     * @beyond waits
     */
    pages: 16,
    pagesOfAccount: 8,
    /** Longest wait of a page for a permit. */
    pageWaitMs: 10_000,
    /** Pages converted to text concurrently, each in a separate thread. */
    conversions: 2,
    htmlMs: 5_000,
    /** The processor time from which a conversion counts as slow (slowWork). */
    slowHtmlMs: 1_000,
  },
  /** Limits of agents' tools. */
  tool: {
    /**
     * Bytes of a result in UTF-8.
     * @beyond truncated, with a note
     */
    resultBytes: 64 * KIB,
    /**
     * Functions offered to a model.
     * @beyond 400 `tool_not_supported`
     */
    functions: 128,
    /**
     * Bytes of offered functions.
     * @beyond 400 `tool_not_supported`
     */
    definitionBytes: 256 * KIB,
    /** Characters of the arguments of a built-in tool. */
    builtInArgumentsChars: 16 * KIB,
    /**
     * Values in arguments.
     * @beyond error for the model
     */
    argumentsValues: 5_000,
    /** Problems of a built-in tool's arguments in its error message. */
    problems: 5,
    /** From so many characters of arguments on, calls begin in turn with the work of other accounts. */
    pacedArgumentsChars: 2 * KIB,
  },
  /** Limits of MCP servers. */
  mcp: {
    /**
     * Servers in the tools file.
     * @beyond file rejected
     */
    servers: 32,
    /** Heap of the thread that connects to the servers. */
    heapMb: 64,
    /** How long the thread may take to respond. */
    silentMs: 10_000,
    /**
     * Tools per server. Further tools are not offered.
     * @beyond not offered; logged
     */
    tools: 128,
    /**
     * A tool's schema as JSON (depth 32).
     * @beyond not offered; logged
     */
    schemaBytes: 32 * KIB,
    schemaDepth: 32,
    descriptionChars: 4_096,
    /** Bytes of all names, descriptions and schemas of a server. Further tools are not offered. */
    listBytes: MIB,
    /**
     * A server's message (50,000 JSON values).
     * @beyond reconnection
     */
    messageBytes: 4 * MIB,
    messageValues: 50_000,
    /**
     * Memory for messages from all servers that have not ended, which wait for each other. One server
     * may use half, less while others use it.
     */
    unfinishedBytes: 10 * MIB,
    /** Bytes that may arrive during a listing, whose pages are kept until the last one. */
    listingBytes: 8 * MIB,
    /** Concurrent listings of all servers. */
    listings: 8,
    /** Limits per second on a server's output: messages, bytes, and lines that are not messages. */
    messagesPerSecond: 200,
    bytesPerSecond: 4 * MIB,
    strayLinesPerSecond: 10,
    /** The seconds for which all of it may arrive at once. */
    burstSeconds: 4,
    /** Time limit for the response of a server when it starts or is called. */
    connectMs: 30_000,
    listMs: 10_000,
    /**
     * Wait for a server's first list.
     * @beyond 502 `tool_error`, no turn
     */
    firstListMs: 5_000,
    /** Interval between listings of a server's tools, which also check its health. */
    refreshMs: 60_000,
    /** Shortest pause between two listings, whatever changes the server announces. */
    listPauseMs: 5_000,
    /** Longest delay before another attempt to reach a lost server. */
    retryMs: 60_000,
    /** Time limit for checking all new schemas of a list. */
    schemasMs: 5_000,
    /** Characters of the problems of arguments, for the model. */
    problemChars: 4_096,
    /**
     * Concurrent calls per server (account: 8).
     * @beyond waits
     */
    calls: 16,
    callsOfAccount: 8,
    callWaitMs: 10_000,
    /** Time for a server to stop. */
    closeMs: 2_000,
    /** Characters logged of the last output of a server that failed to start. */
    quotedChars: 500,
  },
} as const;
