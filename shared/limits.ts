import { TRANSPARENCY_LIMITS } from './transparencyLimits.ts';

const KIB = 1_024;
const MIB = 1_024 * KIB;

/**
 * Every fixed bound on what a client, a tenant, a model or a provider can make grow, in one place.
 * Those that an operator sets are options (shared/config/). docs/limits.md says what happens beyond
 * each; a test compares the two.
 */
export const LIMITS = {
  /**
   * Parts of the heap that Node.js may have. Each is held in more than one shape at times, and texts
   * take two bytes a character; so all together are half of it.
   */
  heap: {
    /** Bodies in progress, from the first byte to the answer. */
    bodies: 1 / 8,
    /** Prompts of runs in flight, where MAX_PROMPT_BYTES does not say otherwise. */
    prompts: 1 / 8,
    /** Answers, until their clients have taken them. */
    answers: 1 / 8,
    /** Answers of models that are being read. */
    modelAnswers: 1 / 8,
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
  /** Of a run. */
  run: {
    /** Model calls that end in tool calls. */
    rounds: 8,
    /** Tool calls of a turn: each is an event for ever. */
    toolCalls: 128,
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
    /** How long the tokens of one text may take to be counted, the wait for others included. */
    countMs: 15_000,
  },
  /** Of what a model provider answers. */
  model: {
    /** Status line and headers. */
    headerBytes: 16 * KIB,
    /** An event holds 1 MiB: what is longer could not be recorded. */
    answerBytes: 2 * MIB,
    /** Answers that are being read at one time, in one process. */
    answersBytes: 64 * MIB,
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
    /** That a call can take, by the provider's count. */
    tokens: 1_000_000_000,
  },
  /** Of what is read of the log, and waits for its disk. */
  store: {
    /** Of the events that are handed to a follower at a time. */
    batchBytes: 16 * MIB,
    /** Of the events of a session that are read at a time. */
    pageBytes: 2 * MIB,
    /** Of the events that wait for the disk. */
    pendingBytes: 64 * MIB,
  },
  ...TRANSPARENCY_LIMITS,
  /** Of a sweep for sessions that are past the maximum of their account's retention. */
  retention: {
    /** Sessions that it erases; the next one goes on. */
    sessionsOfSweep: 10_000,
    /** Sessions that it reads at a time. */
    pageEntries: 500,
  },
  /** Of the erasure of an account. */
  erasure: {
    /** Parked streams whose owner it looks up: no row shows some of them. */
    parkedStreams: 10_000,
    /** Erasures that were begun and not ended, looked at in one go. */
    openErasures: 1_000,
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
  /** Of what is kept in memory to answer faster. */
  cache: {
    agentListBytes: 16 * MIB,
    /** Characters of sessions that went on lately. */
    sessionChars: 8 * MIB,
    /** Turns whose tokens are known: some megabytes. */
    turnTokens: 20_000,
    /** Accounts whose limits are known. */
    accounts: 10_000,
    /** Keys whose requests are counted together with other processes. */
    keys: 10_000,
    /** Keys of texts: some megabytes. */
    textKeys: 20_000,
    /** Characters of agents, or of keys, that are remembered; runs go on with them without a database. */
    rowChars: 8 * MIB,
    /** A longer list is read anew each time. */
    agentListEntryBytes: 2 * MIB,
  },
} as const;
