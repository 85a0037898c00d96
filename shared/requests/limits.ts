import { KIB, MIB } from '../lib/units.ts';

/** The fixed bounds of requests, texts and answers: a part of LIMITS. */
export const REQUEST_LIMITS = {
  /**
   * Parts of the heap that Node.js may have. Each is held in more than one shape at times, and texts
   * take two bytes a character; so all together are less than half of it.
   */
  heap: {
    /** Bodies in progress, from the first byte to the answer. */
    bodies: 0.08,
    /** Prompts of runs in flight, where MAX_PROMPT_BYTES does not say otherwise. */
    prompts: 0.08,
    /** Answers, until their clients have taken them. */
    answers: 0.1,
    /** Answers of models that are being read. */
    modelAnswers: 0.125,
  },
  /** Of a request. */
  http: {
    /** So that a text within its limits comes in however a common client escapes it. */
    bodyBytes: 2 * MIB,
    /** Brackets and commas of a body: reading a million of them takes a third of a second. */
    bodyValues: 20_000,
    /** A text as JSON, as an event holds it: an append is 1 MiB at the most (MAX_APPEND_BYTES). */
    jsonTextBytes: 960 * KIB,
    /** Connections that the system keeps until they are accepted. */
    backlog: 4_096,
    /** From the first byte of a request to its last header. */
    headersMs: 10_000,
    /** From the first byte of a request to its last. */
    requestMs: 30_000,
    /** Requests of a connection that wait for their answers: each takes some kilobytes. */
    pipelined: 8,
    /** How long a client may go on sending that was answered before it had sent all. */
    lingerMs: 1_000,
    /** Large bodies that are read only to be thrown away, since their requests were refused. */
    discarded: 16,
    /** Problems that a 400 lists: nobody reads more, and a hostile body can have a million. */
    details: 20,
    /** Entries that a page is asked for. */
    pageEntries: 1_000,
    /** Of a page: it ends before the entry that would go beyond; a larger entry is alone on one. */
    pageBytes: MIB,
    /** What a list that is answered whole reads at a time. */
    batchBytes: 256 * KIB,
    /** What a compressor of an answer holds. */
    compressorBytes: MIB,
    /** An answer up to this size waits for no room: the connection holds it. */
    smallAnswerBytes: 16 * KIB,
    /** How long an answer waits for room. */
    answerWaitMs: 10_000,
    /** For how long a client may take nothing of its answer. */
    stalledReaderMs: 20_000,
    /** The same while other answers wait for room. */
    stalledReaderInTheWayMs: 5_000,
    /** Between two signs of life of a stream of events. */
    heartbeatMs: 15_000,
    /** What a stream of events holds of them before its client takes them. */
    streamBytes: 16 * KIB,
  },
  /** Of an export of sessions. */
  export: {
    /** What it holds: a page of the log, its turns, and their text. */
    bytes: 8 * MIB,
    /** Sessions that it looks up at a time. */
    sessions: 100,
    /** Of the arguments of a tool call; readers of the formats refuse about 200. */
    argumentsDepth: 64,
  },
  /** Of what a session is called. */
  description: {
    titleCharacters: 256,
    /** Of a session. */
    labels: 32,
    /** That one request names: all that there may be, and others in their place. */
    labelsChanged: 64,
    labelNameCharacters: 64,
    labelValueCharacters: 256,
    /** That one list is asked for. */
    labelsSought: 8,
    /** Events behind a session's row that are looked through: it counts as too old beyond. */
    laterEvents: 1_000,
  },
  /** Of what is told of the usage of an account. */
  usage: {
    /** Rows of the read models that are added up at a time: some milliseconds. */
    sliceRows: 2_000,
  },
  /** Of what health tells. */
  health: {
    /** Parked or damaged streams that are listed; the others are counted. */
    streams: 100,
  },
  /** Of logins that failed. */
  logins: {
    /** Addresses (of IPv6: networks) that are told apart. */
    addresses: 10_000,
    /** Answers that are held back at a time, for all addresses and for one. */
    held: 256,
    heldOfAddress: 20,
    /** Between two lines of the log about one address. */
    lineEveryMs: 10_000,
  },
  /** Of a text that a client sends. */
  text: {
    /** Of agents, accounts and keys. */
    nameCharacters: 256,
    /** Of what a request names: a model, a tool, a component, a session. */
    referenceCharacters: 256,
    /** Of a note on an erasure. */
    noteCharacters: 256,
    instructionBytes: 256 * KIB,
    inputBytes: 512 * KIB,
  },
} as const;
