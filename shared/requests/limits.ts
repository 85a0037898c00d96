import { KIB, MIB } from '../lib/units.ts';

/** Fixed limits of requests, texts and responses, part of LIMITS. */
export const REQUEST_LIMITS = {
  /**
   * The memory ledger: the part of the Node.js heap limit that each purpose may use. Content can be
   * in memory in more than one form, and strings may take two bytes per character. The parts
   * therefore add up to less than half of the heap.
   */
  heap: {
    /**
     * Request bodies.
     * @beyond 429/503
     */
    bodies: 0.04,
    /**
     * Prompts in flight, unless MAX_PROMPT_BYTES is set.
     * @beyond [waits](#runs)
     */
    prompts: 0.04,
    /**
     * Inputs and instructions of waiting runs, likewise.
     * @beyond 429/503
     */
    waitingRuns: 0.03,
    /** Pages of streams, and compared rows. */
    sessionReads: 0.04,
    /**
     * Sessions being replayed.
     * @beyond waits
     */
    replays: 0.04,
    /** Cached sessions, at two bytes per character. */
    sessionCache: 0.02,
    /**
     * Responses being sent.
     * @beyond [waits](#responses)
     */
    answers: 0.06,
    /**
     * Model responses until recorded.
     * @beyond 503
     */
    modelAnswers: 0.05,
    /**
     * MCP tools.
     * @beyond not loaded; logged
     */
    toolLists: 0.02,
    /**
     * Messages to webhooks.
     * @beyond waits
     */
    webhooks: 0.02,
  },
  /** Limits of requests and responses. */
  http: {
    /**
     * Body of a request. Large enough for a text within its limits, regardless of how common clients escape it.
     * @beyond 413 `payload_too_large`
     */
    bodyBytes: 2 * MIB,
    /**
     * Brackets and commas in a body. Parsing a million of them takes a third of a second. Each counts as
     * 64 bytes of memory beside the text.
     * @beyond 400
     */
    bodyValues: 20_000,
    /**
     * A text as JSON in an event. An append has at most 1,032,192 bytes (MAX_APPEND_BYTES).
     * @beyond 400
     */
    jsonTextBytes: 960 * KIB,
    /** Connections that the operating system queues until they are accepted. */
    backlog: 4_096,
    /** Time for request headers. */
    headersMs: 10_000,
    /** Time for a request. */
    requestMs: 30_000,
    /**
     * Headers. Proxies that trace requests add a dozen.
     * @beyond 431
     */
    headers: 100,
    /** Estimated memory of headers that counts as small: that of browsers behind a proxy. */
    smallHeadersBytes: 6 * KIB,
    /**
     * Open requests' large headers.
     * @beyond 503 `overloaded`
     */
    largeHeadersBytes: 32 * MIB,
    /**
     * Unanswered requests per connection. The headers of each take up to 30 KB.
     * @beyond connection closed
     */
    pipelined: 3,
    /**
     * Heap per connection, which limits MAX_CONNECTIONS too. Headers that are arriving take up to 33 KB of memory.
     */
    connectionBytes: 96 * KIB,
    /** Attempts that wait for an earlier one with the same `Idempotency-Key`. */
    waitingAttempts: 1_000,
    /** How long a client may continue to send a body after its response. */
    lingerMs: 1_000,
    /** Large bodies of refused requests that are read and discarded. */
    discarded: 16,
    /**
     * Problems listed in a 400. A hostile body can have a million, and long lists are useless to
     * readers.
     */
    details: 20,
    /** Largest page size of a request. */
    pageEntries: 1_000,
    /**
     * Bytes per page. A page ends before the entry that would exceed this limit; a larger entry
     * gets a page to itself.
     */
    pageBytes: MIB,
    /** Bytes read at a time for a list that is returned as a whole. */
    batchBytes: 256 * KIB,
    /** Memory of a compressor for responses. */
    compressorBytes: MIB,
    /**
     * Responses up to this size are sent without waiting for memory, because the connection buffers
     * them.
     */
    smallAnswerBytes: 16 * KIB,
    /**
     * Wait of a response for memory.
     * @beyond 429/503
     */
    answerWaitMs: 10_000,
    /** Time without the client reading. */
    stalledReaderMs: 20_000,
    /** The same while others wait for memory. */
    stalledReaderInTheWayMs: 5_000,
    /** Least read in this time while they wait for memory of the client's account. */
    slowReaderBytes: 64 * KIB,
    /** An `Accept` or `Accept-Encoding` header that is parsed, in quadratic time. Longer ones are ignored. */
    acceptChars: KIB,
    /** Interval between heartbeats of an event stream. */
    heartbeatMs: 15_000,
    /** Bytes of an event stream that are buffered for its client. */
    streamBytes: 16 * KIB,
  },
  /** Limits of session exports. */
  export: {
    /**
     * Memory of an export.
     * @beyond [waits](#responses)
     */
    bytes: 8 * MIB,
    /** Sessions looked up at a time. */
    sessions: 100,
    /** Models whose tokens are summed apart. Providers choose their names. */
    models: 1_000,
    /** Characters of tool definitions per session. Further ones are left out. */
    toolsChars: MIB,
    /**
     * Nesting of a tool call's arguments. Readers of the export formats reject about 200.
     * @beyond exported [as text](exports.md#atif)
     */
    argumentsDepth: 64,
    /**
     * Brackets and commas in them.
     * @beyond likewise
     */
    argumentsValues: 5_000,
  },
  /** Limits of a session's title and labels. */
  description: {
    /** Title of a session. */
    titleCharacters: 256,
    /** Labels per session. */
    labels: 32,
    /** Labels per request: as many as a session may have, and as many that they replace. */
    labelsChanged: 64,
    /** Name of a label. */
    labelNameCharacters: 64,
    /** Value of a label. */
    labelValueCharacters: 256,
    /**
     * Labels per list request.
     * @beyond 400
     */
    labelsSought: 8,
    /**
     * Events after a session's row that are read. With more of them, the row counts as outdated.
     */
    laterEvents: 1_000,
  },
  /** Limits of usage reports. */
  usage: {
    /** Rows of the read models added up at a time, which takes some milliseconds. */
    sliceRows: 2_000,
  },
  /** Limits of the port for metrics. */
  metrics: {
    /** Connections of clients that read metrics. */
    connections: 16,
  },
  /** Limits of health reports. */
  health: {
    /** Parked or damaged streams listed. Further ones are only counted. */
    streams: 100,
  },
  /** Limits of failed logins. */
  logins: {
    /** Addresses (networks for IPv6) tracked separately. */
    addresses: 10_000,
    /** Delayed responses at a time, for all addresses and for one. */
    held: 256,
    /**
     * Delayed failed logins per address.
     * @beyond 429
     */
    heldOfAddress: 20,
    /** Interval between log lines about an address. */
    lineEveryMs: 10_000,
  },
  /** Limits of texts that clients send. */
  text: {
    /** Names of agents, accounts and keys. */
    nameCharacters: 256,
    /** References in requests: a model, a tool, a component, a session. */
    referenceCharacters: 256,
    /**
     * Notes on erasures.
     * @beyond 400
     */
    noteCharacters: 256,
    /** Instruction of an agent. */
    instructionBytes: 256 * KIB,
    /** Input of a run. */
    inputBytes: 512 * KIB,
  },
} as const;
