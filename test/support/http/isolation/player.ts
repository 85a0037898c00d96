import { randomBytes } from 'node:crypto';
import { apiClient, type Reply } from '../service.ts';
import type { Ref, Step } from './steps.ts';

type Kind = 'agent' | 'session';

/** An account that plays its steps: what it has, and what it was answered. */
export interface Player {
  take(step: Step): Promise<void>;
  /** Its agents and sessions in the order in which it came to know them. */
  known: Record<Kind, string[]>;
  /** Every id that it has, those too that a failed run left behind, in order. */
  all(kind: Kind): Promise<string[]>;
  /** Every answer, without what differs by time or chance alone. */
  answers: string[];
}

/** What a player's references to another account mean. */
export interface Others {
  id(kind: Kind, index: number): string | undefined;
  /**
   * As a cursor an id is a place in the order of ids, whoever has it: a stand-in has the same place
   * among the player's own.
   */
  cursor(kind: Kind, index: number): Promise<string>;
}

const LETTERS = '0123456789abcdefghjkmnpqrstvwxyz';
/** An id that nobody has. */
const strange = (kind: Kind): string =>
  `${kind}_01m8${Array.from(randomBytes(22), (byte) => LETTERS[byte % 32]).join('')}`;
/** Before all others. */
const first = (kind: Kind): string => `${kind}_${'0'.repeat(25)}1`;

/** An id of the other account that was used as a cursor. */
export interface UsedCursor {
  kind: Kind;
  id: string;
}

/** The other account, in the same service; notes the cursors in `used`. */
export const besides = (other: () => Player, used: UsedCursor[]): Others => {
  const id = (kind: Kind, index: number): string | undefined => {
    const ids = other().known[kind];
    return ids[index % (ids.length || 1)];
  };
  return {
    id,
    cursor: async (kind, index) => {
      const found = id(kind, index) ?? first(kind);
      used.push({ kind, id: found });
      return found;
    },
  };
};

/** Nobody: ids that do not exist; at each cursor in turn, one behind so many of the player's own. */
export const nobodyBesides = (self: () => Player, ranks: readonly number[]): Others => {
  const left = [...ranks];
  return {
    id: () => undefined,
    cursor: async (kind) => {
      const before = (await self().all(kind))[left.shift()! - 1];
      return before?.replace(/[^z](z*)$/, 'z$1') ?? first(kind);
    },
  };
};

/** Headers that say something about what was asked, and not only when. */
const HEADERS = [
  'content-type',
  'link',
  'allow',
  'retry-after',
  'x-turnlog-visible',
  'cache-control',
];

const ID = /\b(?:agent|session|acct|key)_[0-7][0-9a-hjkmnp-tv-z]{25}\b/g;
const UUID = /\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g;
const HASH = /\b[0-9a-f]{64}\b/g;
const TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g;
/** A proof tells how many events the whole service has: docs/api.md says so of its log. */
const RECEIPT = /"receipt":(?:null|"(?:[^"\\]|\\.)*")/g;
const ERASURE_RECEIPT = /"erasure_receipt":(?:null|\{.*?"proof":"(?:[^"\\]|\\.)*"\})/g;
const SALT = /"salt":"[\w-]{22}"/g;
const DURATION = /"duration_ms":\s*\d+/g;
/** The scripted server numbers what it answers, whoever asked. */
const COUNTED = /\b(?:chatcmpl|call)[-_]\d+(?:_\d+)?\b/g;

/** Numbers what was made up by chance in the order in which one account saw it. */
function normaliser(): (text: string) => string {
  const seen = new Map<string, string>();
  const name = (found: string): string => {
    const known = seen.get(found) ?? `<${seen.size}>`;
    seen.set(found, known);
    return known;
  };
  return (text) =>
    text
      .replaceAll(TIME, '<time>')
      .replaceAll(SALT, '<salt>')
      .replaceAll(RECEIPT, '<receipt>')
      .replaceAll(ERASURE_RECEIPT, '<erasure receipt>')
      .replaceAll(DURATION, '<duration>')
      .replaceAll(COUNTED, '<model>')
      .replaceAll(ID, name)
      .replaceAll(UUID, name)
      .replaceAll(HASH, name);
}

const query = (given: Record<string, string | number | undefined>): string => {
  const set = Object.entries(given).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${value}`],
  );
  return set.length === 0 ? '' : `?${set.join('&')}`;
};

export function createPlayer(url: string, key: string, others: Others): Player {
  const { get, send, post } = apiClient(url, key);
  const known: Player['known'] = { agent: [], session: [] };
  const answers: string[] = [];
  const normalised = normaliser();

  function idOf(kind: Kind, ref: Ref): string {
    switch (ref.of) {
      case 'own':
        return known[kind][ref.index % (known[kind].length || 1)] ?? strange(kind);
      case 'other':
        return others.id(kind, ref.index) ?? strange(kind);
      case 'nobody':
        return strange(kind);
      default:
        return ref.text;
    }
  }

  async function cursorOf(kind: Kind, ref: Ref | undefined): Promise<string | undefined> {
    if (ref?.of === 'other') return others.cursor(kind, ref.index);
    return ref?.of === 'nobody' ? first(kind) : id(kind, ref);
  }

  const id = (kind: Kind, ref: Ref | undefined): string | undefined => ref && idOf(kind, ref);

  async function call(step: Step): Promise<Reply> {
    switch (step.does) {
      case 'create':
        return post('/v1/agents', step.body);
      case 'get agent':
        return get(`/v1/agents/${id('agent', step.agent)}`);
      case 'list agents': {
        const { limit, pretty } = step;
        const after = await cursorOf('agent', step.after);
        return get(`/v1/agents${query({ limit, after, pretty: String(pretty) })}`);
      }
      case 'run': {
        const session_id = id('session', step.session);
        return post(`/v1/agents/${id('agent', step.agent)}/run`, {
          input: step.input,
          ...(session_id !== undefined && { session_id }),
        });
      }
      case 'list sessions': {
        const after = await cursorOf('session', step.after);
        const agent_id = id('agent', step.agent);
        return get(`/v1/sessions${query({ limit: step.limit, after, agent_id })}`);
      }
      case 'read': {
        const { what, limit, after } = step;
        return get(`/v1/sessions/${id('session', step.session)}${what}${query({ limit, after })}`);
      }
      case 'cancel':
        return post(`/v1/sessions/${id('session', step.session)}/cancel`, { turn: step.turn });
      case 'erase':
        return step.what === 'agent'
          ? post(`/v1/agents/${id('agent', step.ref)}/erase`, '')
          : send('DELETE', `/v1/sessions/${id('session', step.ref)}`, '');
      case 'look up':
        return get(step.path);
      case 'send':
        return send(step.method, step.path, step.body, step.headers);
      default:
        return step satisfies never;
    }
  }

  return {
    known,
    answers,
    async all(kind) {
      const { data } = (await get(`/v1/${kind}s?limit=1000`)).body;
      return (data as Record<string, string>[]).map((row) => row[`${kind}_id`]!).toSorted();
    },
    async take(step) {
      const { status, headers, body } = await call(step);
      if (step.does === 'create' && status === 200) known.agent.push(body.data.agent_id);
      if (step.does === 'run' && status === 200 && !known.session.includes(body.data.session_id))
        known.session.push(body.data.session_id);
      const told = HEADERS.map((name) => `${name}: ${headers.get(name)}`);
      answers.push(normalised(`${step.does} ${status} ${told.join(' ')} ${JSON.stringify(body)}`));
    },
  };
}
