import type { Battle } from '../attack.ts';
import { costlyBodies, unknownFieldsOnly } from './bodies.ts';
import { changeAgain, loadStreams } from './changes.ts';
import { holdConnections, holdHeaders } from './connections.ts';
import { floodIndex } from './searches.ts';
import { streamDeltas } from './deltas.ts';
import { EXPORT_CUT, exportSlowly } from './exports.ts';
import { followTurn } from './followers.ts';
import { largePrompts, loadHistories, OF_A_FORK, replayHistories } from './histories.ts';
import { exceedRate, failLogins } from './floods.ts';
import { sendPieces } from './pieces.ts';
import { randomMix } from './random.ts';
import { filterSessions, LISTED } from './lists.ts';
import { FOLLOWED_TO_END, STARTED_AGAIN, startReplays } from './replays.ts';
import { retryAtOnce } from './retries.ts';
import { hardlyRead, neverRead, neverReadEvents, readLargest, varyQueries } from './reading.ts';
import { fillStorage, STORAGE_OPTIONS } from './storage.ts';
import { faultyProvider, floodSlowModel, hostileModel } from './runs.ts';
import { changeWebhooks, hintingProvider } from './small.ts';
import { hostileTools, slowSchemas } from './tools.ts';

interface Attack {
  /** What it is, as the end of a sentence: "bears …". */
  what: string;
  attack: (battle: Battle) => Promise<void>;
  /** Answers that it must meet, or it shows nothing: it goes on until it has. */
  meets: readonly string[];
  /** Options of the service. */
  service?: Record<string, string>;
}

const attacks = {
  readers: {
    what: 'clients that ask for the largest list and transcript again and again',
    attack: readLargest,
    meets: ['200'],
  },
  deaf: {
    what: 'clients that ask for the same and never read',
    attack: neverRead,
    meets: ['cut'],
  },
  unread: {
    what: 'clients that change an agent and repeat a run, and hardly read the responses',
    attack: hardlyRead,
    meets: ['cut'],
  },
  slow: {
    what: 'runs of 500 KiB with a slow model',
    attack: floodSlowModel,
    meets: ['200', '429 rate_limited'],
  },
  silent: {
    what: 'connections that say nothing, or a byte at a time',
    attack: holdConnections,
    meets: ['cut', '408 invalid_request'],
  },
  headers: {
    what: 'connections that idle, wait or stop after as many headers as they may send, or send more',
    attack: holdHeaders,
    meets: ['200', '431 invalid_request', '503 overloaded', '408 invalid_request'],
  },
  pieces: {
    what: 'bodies of chunks of one byte, also behind requests that wait, and CONNECTs that are reset',
    attack: sendPieces,
    meets: ['400 invalid_json'],
  },
  faulty: {
    what: 'a provider that answers 8 MiB of error',
    attack: faultyProvider,
    meets: ['502 model_error'],
  },
  cache: {
    what: 'requests that are each unlike all before them',
    attack: varyQueries,
    meets: ['200', '400 invalid_request'],
  },
  fields: {
    what: 'bodies of 100,000 unknown fields',
    attack: unknownFieldsOnly,
    meets: ['400 invalid_request'],
  },
  bodies: {
    what: 'bodies that cost more to refuse than to send',
    attack: costlyBodies,
    meets: ['400 invalid_request'],
  },
  model: {
    what: 'models that call 8,000 tools, answer 8 MiB, or answer what takes long to read',
    attack: hostileModel,
    meets: ['200', '502 model_error', '502 tool_error'],
  },
  deltas: {
    what: 'a provider that streams 100,000 tiny deltas, empty lines, new indexes, and chunks of one byte',
    attack: streamDeltas,
    meets: ['200'],
  },
  schemas: {
    what: 'answers that are slow to check against their schema',
    attack: slowSchemas,
    meets: ['502 model_error'],
  },
  tools: {
    what: 'MCP servers that flood, answer without a request, change their schemas and have slow patterns',
    attack: hostileTools,
    meets: [
      '200',
      'mcp changes away',
      'mcp garbage away',
      'mcp logs away',
      'mcp schemas up',
      'mcp patterns up',
      'mcp results up',
    ],
    service: { TOOLS_FILE: 'test/support/processes/hostile/processes/tools.json' },
  },
  followers: {
    what: 'thousands of clients that follow one live turn',
    attack: followTurn,
    meets: ['200 output.delta'],
  },
  events: {
    what: 'clients that follow large events and never read',
    attack: neverReadEvents,
    meets: ['200', 'cut'],
  },
  searches: {
    what: 'a flood of runs of many words or marks, and of searches for them',
    attack: floodIndex,
    meets: ['200'],
  },
  logins: {
    what: 'a flood of failed logins',
    attack: failLogins,
    meets: ['401 unauthorized', '429 rate_limited'],
  },
  rate: {
    what: 'a flood of small requests of one key',
    attack: exceedRate,
    meets: ['200', '429 rate_limited'],
    service: { RATE_LIMIT_PER_SECOND: '200' },
  },
  webhooks: {
    what: 'webhooks that are changed all the time, with receivers that never answer',
    attack: changeWebhooks,
    meets: ['200'],
    service: { WEBHOOKS_ALLOW_PRIVATE: 'true' },
  },
  hints: {
    what: 'a provider that sends informational responses without end',
    attack: hintingProvider,
    meets: ['502 model_error'],
  },
  lists: {
    what: 'lists of many sessions by filters that leave out most of them',
    attack: filterSessions,
    meets: [LISTED],
  },
  changes: {
    what: 'an agent, a webhook and a session that are changed again and again',
    attack: changeAgain,
    meets: ['200'],
    service: { WEBHOOKS_ALLOW_PRIVATE: 'true' },
  },
  cancels: {
    what: 'many connections that cancel, fork, delete and create keys, and change nothing',
    attack: loadStreams,
    meets: ['200', '400 invalid_request', '409 key_limit_reached', '412 precondition_failed'],
  },
  storage: {
    what: 'agents and recorded reads that fill the disk',
    attack: fillStorage,
    meets: ['200', '429 quota_exceeded'],
    service: STORAGE_OPTIONS,
  },
  histories: {
    what: 'runs in forks of a session of large turns',
    attack: loadHistories,
    meets: [OF_A_FORK],
  },
  replays: {
    what: 'replays of forks of a session of large turns, and a restart',
    attack: replayHistories,
    meets: ['202'],
  },
  starts: {
    what: 'replays that are started with the same key and others, followed, not read and cancelled',
    attack: startReplays,
    meets: ['202', STARTED_AGAIN, FOLLOWED_TO_END, '409 replay_limit_reached', '429 rate_limited'],
  },
  retries: {
    what: 'clients that send the same keyed runs at once, and give up half of them',
    attack: retryAtOnce,
    meets: ['200', 'cut'],
  },
  exports: {
    what: 'exports, reports and proofs of a large session that most clients read slowly',
    attack: exportSlowly,
    meets: ['200', EXPORT_CUT, '429 rate_limited'],
  },
  prompts: {
    what: 'runs of many sessions with the largest prompts',
    attack: largePrompts,
    meets: [OF_A_FORK],
  },
} satisfies Record<string, Attack>;

export type AttackName = keyof typeof attacks | 'random';
/** Every attack, by its name in the table; `random` needs a mix. */
export const ATTACKS: Record<AttackName, Attack> = {
  ...attacks,
  random: { what: 'a random mix', attack: randomMix, meets: [] },
};
export const ATTACK_NAMES = Object.keys(attacks) as (keyof typeof attacks)[];

/** Attacks that are borne together; the others have a thread, a quota or a provider of their own. */
export const TOGETHER = [
  'readers',
  'deaf',
  'slow',
  'silent',
  'faulty',
  'cache',
  'fields',
  'bodies',
  'model',
  'logins',
  'rate',
] as const satisfies readonly AttackName[];
