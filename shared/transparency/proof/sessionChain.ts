import { GENESIS_HASH } from '../../eventlog/hashChain.ts';
import { matchesCommitment } from '../../eventlog/encryption/protectedText.ts';
import { committedHash, mapTexts, type ShownEvent } from './shownTexts.ts';

/** Maximum number of hidden texts that are listed. Further ones are only counted. */
const LISTED = 100;

/** An undisclosed text of an event. */
interface HiddenText {
  revision: number;
  field: string;
  why: 'redacted' | 'erased';
}

/** The part of a stream that was checked so far. */
export interface SeenStream {
  events: number;
  /** The hash of the last event. */
  hash: string;
  disclosed: number;
  redacted: number;
  erased: number;
  /** The first 100 hidden texts. */
  hidden: HiddenText[];
}

const MEMBERS = 'data,id,metadata,revision,stream,type';

const isEvent = (value: unknown): value is ShownEvent =>
  typeof value === 'object' &&
  value !== null &&
  Object.keys(value).toSorted().join(',') === MEMBERS &&
  typeof (value as ShownEvent).metadata === 'object' &&
  (value as ShownEvent | { metadata: null }).metadata !== null;

/** The members of a session's events that hold texts, at the top level and in labels. */
const TEXT_MEMBERS = [
  'arguments',
  'content',
  'input',
  'instruction',
  'message',
  'output',
  'result',
  'summary',
  'title',
];
const LABEL_MEMBERS = ['name', 'value'];

/** The first member of an event's data with a plain string where texts are. */
function plainTextIn(data: unknown): string | undefined {
  if (typeof data !== 'object' || data === null) return undefined;
  const members = data as Readonly<Record<string, unknown>>;
  const plain = TEXT_MEMBERS.find((name) => typeof members[name] === 'string');
  if (plain !== undefined) return plain;
  const labels: unknown[] = Array.isArray(members['labels']) ? members['labels'] : [];
  const isPlain = (label: unknown): boolean =>
    typeof label === 'object' &&
    label !== null &&
    LABEL_MEMBERS.some((name) => typeof (label as typeof members)[name] === 'string');
  return labels.some(isPlain) ? 'labels' : undefined;
}

/**
 * Checks the events of a stream from its beginning, without access to a store: hash chain, hashes
 * and disclosed texts. `add` returns why an event does not fit, as a phrase about it; undefined when
 * it fits.
 */
export function createStreamChecker(stream: string): {
  add: (value: unknown) => string | undefined;
  seen: SeenStream;
} {
  const seen: SeenStream = {
    events: 0,
    hash: GENESIS_HASH,
    disclosed: 0,
    redacted: 0,
    erased: 0,
    hidden: [],
  };

  function faultOf(event: ShownEvent): string | undefined {
    if (event.stream !== stream) return `it is of the stream ${event.stream}`;
    if (event.revision !== seen.events)
      return `its revision is ${event.revision} instead of ${seen.events}`;
    if (event.metadata.prev_hash !== seen.hash)
      return 'its prev_hash is not the hash of the event before it';
    let wrongField: string | undefined;
    const data = mapTexts(event.data, (text, field) => {
      if (!matchesCommitment(text)) wrongField ??= field;
      const why = text.erased ? 'erased' : 'redacted';
      const kind = text.text === undefined ? why : 'disclosed';
      seen[kind] += 1;
      if (kind !== 'disclosed' && seen.hidden.length < LISTED)
        seen.hidden.push({ revision: event.revision, field, why });
      return { sha256: text.sha256 };
    });
    const plain = seen.disclosed + seen.redacted + seen.erased > 0 && plainTextIn(event.data);
    if (typeof plain === 'string')
      return `its ${plain} is not protected, and a text before it, or beside it, is`;
    if (wrongField !== undefined) return `its ${wrongField} is not the text that was committed to`;
    return committedHash(event, data) === event.metadata.hash
      ? undefined
      : 'its hash does not match its content';
  }

  function faultIn(event: ShownEvent): string | undefined {
    try {
      return faultOf(event);
    } catch {
      // Deep nesting can overflow the stack.
      return 'it has no canonical form';
    }
  }

  return {
    seen,
    add(event) {
      if (!isEvent(event)) return 'it is no event';
      const fault = faultIn(event);
      if (fault !== undefined) return fault;
      seen.events += 1;
      seen.hash = event.metadata.hash;
      return undefined;
    },
  };
}
