/** The hash chain of a session's events, as docs/proof.md of the service specifies it. */
import { digest, join, toHex, utf8, type Bytes } from './bytes.ts';
import { toCanonical } from './canonical.ts';
import { Mismatch, type MismatchDetails } from './mismatch.ts';

const FIRST_PREV_HASH = '0'.repeat(64);
const SHA256 = /^[0-9a-f]{64}$/;
const SALT = /^[\w-]{22}$/;
const EVENT_MEMBERS = 'data,id,metadata,revision,stream,type';

/** The members of a session's events that are texts. */
const TEXTS = 'arguments content input instruction message output result summary title'.split(' ');
const LABEL_TEXTS = ['name', 'value'];

const KINDS: Readonly<Record<string, 'disclosed' | 'redacted' | 'erased'>> = {
  'salt,sha256,text': 'disclosed',
  sha256: 'redacted',
  'erased,sha256': 'erased',
};

type Members = Readonly<Record<string, unknown>>;

export interface ChainedEvent {
  id: unknown;
  stream: unknown;
  revision: unknown;
  type: unknown;
  data: unknown;
  metadata: Members;
}

const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const membersOf = (value: Members): string => Object.keys(value).toSorted().join();

export const isEvent = (value: unknown): value is ChainedEvent =>
  isObject(value) && membersOf(value) === EVENT_MEMBERS && isObject(value['metadata']);

/** What became of a text: undefined for an object that represents none. */
function kindOf(value: Members): 'disclosed' | 'redacted' | 'erased' | undefined {
  const { sha256, salt = '', text = '', erased = true } = value;
  const isText =
    typeof sha256 === 'string' &&
    SHA256.test(sha256) &&
    typeof salt === 'string' &&
    typeof text === 'string' &&
    erased === true;
  return isText ? KINDS[membersOf(value)] : undefined;
}

function saltBytes(salt: string): Bytes | undefined {
  if (!SALT.test(salt)) return undefined;
  const binary = atob(salt.replaceAll('-', '+').replaceAll('_', '/'));
  return Uint8Array.from(binary, (char) => char.charCodeAt(0));
}

/** Returns the first member with a plain string where texts are; undefined without one. */
function plainText(data: unknown): string | undefined {
  if (!isObject(data)) return undefined;
  const found = TEXTS.find((name) => typeof data[name] === 'string');
  if (found !== undefined) return found;
  const labels: unknown[] = Array.isArray(data['labels']) ? data['labels'] : [];
  const isPlain = (label: unknown): boolean =>
    isObject(label) && LABEL_TEXTS.some((name) => typeof label[name] === 'string');
  return labels.some(isPlain) ? 'labels' : undefined;
}

export interface DisclosedText {
  field: string;
  sha256: string;
  salt: string;
  text: string;
}

type OnText = (kind: 'disclosed' | 'redacted' | 'erased', text: DisclosedText) => void;

/** Replaces texts by their commitments, and calls `onText` for each. */
function toCommitted(value: unknown, onText: OnText, field = ''): unknown {
  if (Array.isArray(value)) return value.map((item) => toCommitted(item, onText, field));
  if (!isObject(value)) return value;
  const kind = kindOf(value);
  if (kind === undefined)
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [name, toCommitted(member, onText, name)]),
    );
  onText(kind, { field, ...(value as Omit<DisclosedText, 'field'>) });
  return { sha256: value['sha256'] };
}

/**
 * Recomputes the hash of an event, and calls `onText` for each of its texts. Throws TypeError for an
 * event that has no canonical form.
 */
export async function recomputeHash(event: ChainedEvent, onText: OnText): Promise<string> {
  const { prev_hash: previous, hash: _hash, ...metadata } = event.metadata;
  const covered = toCanonical({ ...event, data: toCommitted(event.data, onText), metadata });
  return toHex(await digest(utf8(`${String(previous)}${covered}`)));
}

/** The commitment that a disclosed text has; undefined for a salt of another length. */
export async function commitmentOf({ salt, text }: DisclosedText): Promise<string | undefined> {
  const salted = saltBytes(salt);
  return salted && toHex(await digest(join(salted, utf8(text))));
}

/** What was verified of a session so far. */
export interface ChainState {
  events: number;
  /** The hash of the last event. */
  hash: string;
  /** When the service recorded the first and the last event, by its own clock. */
  firstTime: string;
  lastTime: string;
  texts: { disclosed: number; redacted: number; erased: number };
}

const CHANGED = 'The event was changed after it was recorded, or it was never recorded like this.';
const MOVED =
  'An event before it is missing or was added, or the order was changed. Everything from here on is in doubt.';

/** What identifies an event to a reader, as far as it is an event. */
export function labelOf(value: unknown, revision: number): NonNullable<MismatchDetails['event']> {
  const event = isObject(value) ? value : {};
  const metadata = isObject(event['metadata']) ? event['metadata'] : {};
  return {
    revision,
    type: String(event['type'] ?? 'unknown'),
    time: String(metadata['recorded_at'] ?? ''),
  };
}

type Fail = (what: string, details: Omit<MismatchDetails, 'event'>) => never;

/**
 * Verifies the events of a session from its first one. `add` takes the next event, with or without
 * its texts, and throws Mismatch when it does not fit.
 */
export function chainVerifier(sessionId: string) {
  const state: ChainState = {
    events: 0,
    hash: FIRST_PREV_HASH,
    firstTime: '',
    lastTime: '',
    texts: { disclosed: 0, redacted: 0, erased: 0 },
  };

  async function check(event: ChainedEvent, fail: Fail): Promise<void> {
    const { metadata } = event;
    if (event.stream !== `session-${sessionId}`)
      fail('belongs to another session', { actual: String(event.stream), meaning: MOVED });
    if (event.revision !== state.events)
      fail('has another revision', {
        expected: String(state.events),
        actual: String(event.revision),
        meaning: MOVED,
      });
    if (metadata['prev_hash'] !== state.hash)
      fail('does not continue the hash chain', {
        expected: state.hash,
        actual: String(metadata['prev_hash']),
        meaning: MOVED,
      });
    const disclosed: DisclosedText[] = [];
    const actual = await recomputeHash(event, (kind, text) => {
      state.texts[kind] += 1;
      if (kind === 'disclosed') disclosed.push(text);
    });
    const { texts } = state;
    const plain = texts.disclosed + texts.redacted + texts.erased > 0 && plainText(event.data);
    if (typeof plain === 'string')
      fail(`has a ${plain} without a commitment, among texts that have one`, { meaning: CHANGED });
    for (const text of disclosed) {
      const commitment = await commitmentOf(text);
      if (commitment !== text.sha256)
        fail(`has another ${text.field} than the one that was recorded`, {
          expected: text.sha256,
          actual: commitment ?? 'a salt of another length',
          meaning:
            'This text was changed after it was recorded. The other parts of the event may be right.',
        });
    }
    if (actual !== metadata['hash'])
      fail('does not match its hash', {
        expected: String(metadata['hash']),
        actual,
        meaning: CHANGED,
      });
  }

  return {
    state,
    async add(value: unknown): Promise<void> {
      const label = labelOf(value, state.events);
      const fail: Fail = (what, details) => {
        throw new Mismatch(`The event at revision ${state.events} ${what}.`, {
          event: label,
          ...details,
        });
      };
      if (!isEvent(value)) return fail('is no event', { meaning: CHANGED });
      try {
        await check(value, fail);
      } catch (error) {
        if (error instanceof Mismatch) throw error;
        // Lone surrogates, or too many levels.
        return fail('has no canonical form', { meaning: CHANGED });
      }
      state.firstTime ||= label.time;
      state.lastTime = label.time;
      state.events += 1;
      state.hash = String(value.metadata['hash']);
      return undefined;
    },
  };
}
