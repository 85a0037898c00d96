import type { Battle } from '../attack.ts';
import { costlyBodies, unknownFieldsOnly } from './bodies.ts';
import { holdConnections } from './connections.ts';
import { exceedRate, failLogins } from './floods.ts';
import { neverRead, readLargest, varyQueries } from './reading.ts';
import { faultyProvider, floodSlowModel, hostileModel } from './runs.ts';

interface Attack {
  /** What it is, as the end of a sentence: "bears …". */
  what: string;
  attack: (battle: Battle) => Promise<void>;
}

/** Every attack, by its name in the table. */
export const ATTACKS = {
  readers: {
    what: 'clients that ask for the largest list and transcript again and again',
    attack: readLargest,
  },
  deaf: { what: 'clients that ask for the same and never read', attack: neverRead },
  slow: { what: 'runs of 500 KiB with a slow model', attack: floodSlowModel },
  silent: { what: 'connections that say nothing, or a byte at a time', attack: holdConnections },
  faulty: { what: 'a provider that answers 8 MiB of error', attack: faultyProvider },
  cache: { what: 'requests that are each unlike all before them', attack: varyQueries },
  fields: { what: 'bodies of 100,000 unknown fields', attack: unknownFieldsOnly },
  bodies: { what: 'bodies that cost more to refuse than to send', attack: costlyBodies },
  model: { what: 'a model that calls 8,000 tools, or answers 8 MiB', attack: hostileModel },
  logins: { what: 'a flood of failed logins', attack: failLogins },
  rate: { what: 'a flood of small requests of one key', attack: exceedRate },
} satisfies Record<string, Attack>;

export type AttackName = keyof typeof ATTACKS;
export const ATTACK_NAMES = Object.keys(ATTACKS) as AttackName[];
