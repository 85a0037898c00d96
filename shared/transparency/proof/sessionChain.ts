import { proofInvalidError } from '../../lib/errors/turnlogError.ts';
import { GENESIS_HASH } from '../../eventlog/hashChain.ts';
import { matchesCommitment } from '../../eventlog/encryption/protectedText.ts';
import { mapTexts, shownEventHash, type ShownEvent } from './shownTexts.ts';

/** Maximum number of hidden texts that are listed. Further ones are only counted. */
const LISTED = 100;

/** An undisclosed text of an event. */
export interface HiddenText {
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

/**
 * Checks the events of a stream from its beginning, without access to a store: hash chain, hashes
 * and disclosed texts. `add` throws `proof_invalid` for the first event that does not fit.
 */
export function createStreamChecker(stream: string): {
  add: (value: unknown) => void;
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
    mapTexts(event.data, (text, field) => {
      if (!matchesCommitment(text)) wrongField ??= field;
      const why = text.erased ? 'erased' : 'redacted';
      const kind = text.text === undefined ? why : 'disclosed';
      seen[kind] += 1;
      if (kind !== 'disclosed' && seen.hidden.length < LISTED)
        seen.hidden.push({ revision: event.revision, field, why });
    });
    if (wrongField !== undefined) return `its ${wrongField} is not the text that was committed to`;
    return shownEventHash(event) === event.metadata.hash
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
      const prefix = `The event at revision ${seen.events} does not fit`;
      if (!isEvent(event)) throw proofInvalidError(`${prefix}: it is no event.`);
      const fault = faultIn(event);
      if (fault !== undefined) throw proofInvalidError(`${prefix}: ${fault}.`);
      seen.events += 1;
      seen.hash = event.metadata.hash;
    },
  };
}
