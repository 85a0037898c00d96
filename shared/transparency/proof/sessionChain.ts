import { proofInvalidError } from '../../lib/errors/turnlogError.ts';
import { GENESIS_HASH } from '../../eventlog/hashChain.ts';
import { matchesCommitment } from '../../eventlog/encryption/protectedText.ts';
import { mapTexts, shownEventHash, type ShownEvent } from './shownTexts.ts';

/** Texts that are not disclosed and can be told of; the others are counted. */
const LISTED = 100;

/** A text of an event that is not disclosed. */
export interface HiddenText {
  revision: number;
  field: string;
  why: 'redacted' | 'erased';
}

/** What was seen of a stream so far. */
export interface SeenStream {
  events: number;
  /** Of the last event. */
  hash: string;
  disclosed: number;
  redacted: number;
  erased: number;
  /** The first hundred. */
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
 * Checks the events of a stream, from its first one on, as they are shown to somebody who has no
 * store: chain, hashes and the texts that are disclosed. `add` throws `proof_invalid` with the first
 * misfit.
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
    let wrong: string | undefined;
    mapTexts(event.data, (text, field) => {
      if (!matchesCommitment(text)) wrong ??= field;
      const why = text.erased ? 'erased' : 'redacted';
      const kind = text.text === undefined ? why : 'disclosed';
      seen[kind] += 1;
      if (kind !== 'disclosed' && seen.hidden.length < LISTED)
        seen.hidden.push({ revision: event.revision, field, why });
    });
    if (wrong !== undefined) return `its ${wrong} is not the text that was committed to`;
    return shownEventHash(event) === event.metadata.hash
      ? undefined
      : 'its hash does not match its content';
  }

  function faultIn(event: ShownEvent): string | undefined {
    try {
      return faultOf(event);
    } catch {
      // It may be nested deeper than the stack reaches.
      return 'it has no canonical form';
    }
  }

  return {
    seen,
    add(event) {
      const place = `The event at revision ${seen.events} does not fit`;
      if (!isEvent(event)) throw proofInvalidError(`${place}: it is no event.`);
      const fault = faultIn(event);
      if (fault !== undefined) throw proofInvalidError(`${place}: ${fault}.`);
      seen.events += 1;
      seen.hash = event.metadata.hash;
    },
  };
}
