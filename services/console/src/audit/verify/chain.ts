/** The hash chain of a session's events, as docs/proof.md of the service specifies it. */
import { digest, join, toHex, utf8 } from './bytes.ts';
import { Mismatch } from './mismatch.ts';

/** Deeper values are rejected, before they overflow the stack. */
const MAX_DEPTH = 90;

function toJson(value: string): string {
  if (value.isWellFormed()) return JSON.stringify(value);
  throw new TypeError('a text has a lone surrogate');
}

/**
 * The canonical JSON (RFC 8785) of a value that JSON.parse returned. Throws TypeError for a lone
 * surrogate and more than 90 levels.
 */
export function toCanonical(value: unknown, depth = 0): string {
  if (depth > MAX_DEPTH) throw new TypeError(`there are more than ${MAX_DEPTH} levels`);
  if (typeof value === 'string') return toJson(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((item) => toCanonical(item, depth + 1)).join()}]`;
  const members = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${toJson(name)}:${toCanonical(member, depth + 1)}`).join()}}`;
}

const SHA256 = /^[0-9a-f]{64}$/;
const SALT = /^[\w-]{22}$/;
/** The members of a session's events that are texts, and those of its labels. */
const TEXTS = 'arguments content input instruction message output result summary title'.split(' ');
const LABEL_TEXTS = ['name', 'value'];
const KINDS: Readonly<Record<string, 'disclosed' | 'redacted' | 'erased'>> = {
  'salt,sha256,text': 'disclosed',
  sha256: 'redacted',
  'erased,sha256': 'erased',
};

type Members = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const namesOf = (value: Members): string => Object.keys(value).toSorted().join();

/** The form of a text: undefined for an object that represents none. */
function kindOf({ sha256, salt = '', text = '', erased = true }: Members, names: string) {
  const isText = typeof sha256 === 'string' && SHA256.test(sha256);
  const isWhole = typeof salt === 'string' && typeof text === 'string' && erased === true;
  return isText && isWhole ? KINDS[names] : undefined;
}

/** Returns the first member with a plain string where texts are; undefined without one. */
function plainText(data: unknown): string | undefined {
  if (!isObject(data)) return undefined;
  const labels: unknown[] = Array.isArray(data['labels']) ? data['labels'] : [];
  const isPlain = (label: unknown): boolean =>
    isObject(label) && LABEL_TEXTS.some((name) => typeof label[name] === 'string');
  const plainField = TEXTS.find((name) => typeof data[name] === 'string');
  return plainField ?? (labels.some(isPlain) ? 'labels' : undefined);
}

async function commitmentOf({ salt, text }: Members): Promise<string> {
  if (!SALT.test(String(salt))) return 'a salt of another length';
  if (!String(text).isWellFormed()) return 'a lone surrogate';
  const binary = atob(String(salt).replaceAll('-', '+').replaceAll('_', '/'));
  const bytes = Uint8Array.from(binary, (char) => char.charCodeAt(0));
  return toHex(await digest(join(bytes, utf8(String(text)))));
}

/** The verified part of a session. `hash` is that of its last event. */
export interface ChainState {
  events: number;
  hash: string;
  texts: { disclosed: number; redacted: number; erased: number };
}

const CHANGED = 'The event was changed after it was recorded, or it was never recorded like this.';
const MOVED =
  'An event before it is missing or was added, or the order was changed. Everything from here on is in doubt.';
const TEXT = 'This text was changed after it was recorded. The rest of the event may be right.';

type Misfit = [what: string, meaning: string, expected?: unknown, actual?: unknown];

/** The misfit of lone surrogates, or of too many levels. */
const noFormOf = (): Misfit => ['has no canonical form', CHANGED];

const textOf = (text: unknown): string => (typeof text === 'string' ? text : '');

/** The fields that identify an event to a reader, as far as it is an event. */
export function labelOf(value: unknown, revision: number) {
  const { type, metadata } = isObject(value) ? value : ({} as Members);
  const time = isObject(metadata) ? metadata['recorded_at'] : undefined;
  return { revision, type: textOf(type), time: textOf(time) };
}

/**
 * Verifies the events of a session from its first one. `add` takes the next event, with or without
 * its texts, and throws Mismatch when it does not fit.
 */
export function chainVerifier(sessionId: string) {
  const texts = { disclosed: 0, redacted: 0, erased: 0 };
  const state: ChainState = { events: 0, hash: '0'.repeat(64), texts };

  /** Replaces texts by their commitments, and collects those that are disclosed. */
  function toCommitted(value: unknown, disclosed: [string, Members][], field = ''): unknown {
    if (Array.isArray(value)) return value.map((item) => toCommitted(item, disclosed, field));
    if (!isObject(value)) return value;
    const kind = kindOf(value, namesOf(value));
    if (kind === undefined) {
      const members = Object.entries(value);
      return Object.fromEntries(
        members.map(([name, member]) => [name, toCommitted(member, disclosed, name)]),
      );
    }
    texts[kind] += 1;
    if (kind === 'disclosed') disclosed.push([field, value]);
    return { sha256: value['sha256'] };
  }

  async function misfitOf(event: unknown): Promise<Misfit | undefined> {
    if (!isObject(event) || namesOf(event) !== 'data,id,metadata,revision,stream,type')
      return ['is no event', CHANGED];
    const { stream, revision, data, metadata } = event;
    if (!isObject(metadata)) return ['is no event', CHANGED];
    const { prev_hash: previous, hash, ...covered } = metadata;
    const due = `session-${sessionId}`;
    if (stream !== due) return ['belongs to another session', MOVED, due, stream];
    if (revision !== state.events) return ['has another revision', MOVED, state.events, revision];
    if (previous !== state.hash)
      return ['does not continue the hash chain', MOVED, state.hash, previous];
    const disclosed: [string, Members][] = [];
    const committed = { ...event, data: toCommitted(data, disclosed), metadata: covered };
    const plain = texts.disclosed + texts.redacted + texts.erased > 0 && plainText(data);
    if (typeof plain === 'string') return [`has a ${plain} without a commitment`, CHANGED];
    for (const [field, text] of disclosed) {
      const commitment = await commitmentOf(text);
      if (commitment !== text['sha256'])
        return [`has another ${field} than was recorded`, TEXT, text['sha256'], commitment];
    }
    const actual = toHex(await digest(utf8(`${previous}${toCanonical(committed)}`)));
    if (actual !== hash) return ['does not match its hash', CHANGED, hash, actual];
    state.hash = actual;
    return undefined;
  }

  return {
    state,
    async add(value: unknown): Promise<void> {
      const event = labelOf(value, state.events);
      const misfit = await misfitOf(value).catch(noFormOf);
      if (misfit) {
        const [what, meaning, due, is] = misfit;
        const [expected, actual] = [due, is].map((each) => each?.toString());
        const message = `The event at revision ${state.events} ${what}.`;
        throw new Mismatch(message, { event, meaning, expected, actual });
      }
      state.events += 1;
    },
  };
}
