import { TurnlogError } from '../../lib/errors/turnlogError.ts';
import { mapTexts, withholdText, type ShownEvent, type ShownText } from './shownTexts.ts';

/** The texts that can be redacted. */
const FIELDS = [
  'input',
  'output',
  'content',
  'arguments',
  'result',
  'message',
  'tool',
  'summary',
  'reasoning',
  'extra',
  'instruction',
  'title',
  'labels',
  'response_format',
] as const;
/** The fields of all texts in a member of an event's data, by the member. Other members use their own names. */
const GROUPS = new Map([
  ['labels', 'labels'],
  ['settings', 'response_format'],
]);
/**
 * Values that would confirm a correct guess of a text: the unsalted hash of a prompt, and ids, which
 * a provider may derive from texts.
 */
const ORACLES: ReadonlySet<string> = new Set(['request_sha256', 'response_id', 'call_id']);
/** The same in plain, as earlier releases and their offline model recorded them. */
const PLAIN_ORACLE =
  /"request_sha256":"[0-9a-f]{64}"|"(?:response|call)_id":"(?:chatcmpl|call)-offline-[0-9a-f]{24}"/;

/** True if the data of an event has a plain string where it has a text by this name. */
function hasPlain(data: object, field: string): boolean {
  const members = data as Partial<Record<string, unknown>>;
  if (field === 'labels')
    return Object.values((members['labels'] as object[] | undefined) ?? []).some(
      ({ name, value }: { name?: unknown; value?: unknown }) =>
        typeof name === 'string' || typeof value === 'string',
    );
  const text = members[field];
  return typeof text === 'string' && text !== '';
}

/** A turn, a field of a turn, or a field of all turns. */
export interface Selector {
  turn: number | undefined;
  field: string | undefined;
}

const SELECTOR = new RegExp(
  `^(?:([1-9]\\d{0,8})(?:\\.(${FIELDS.join('|')}))?|(${FIELDS.join('|')}))$`,
);

/** Parses selectors such as `3,4.input,result`; undefined when one is malformed. */
export function parseSelectors(text: string): Selector[] | undefined {
  const matches = text.split(',').map((part) => SELECTOR.exec(part.trim()));
  return matches.some((match) => match === null)
    ? undefined
    : matches.map((match) => ({
        turn: match![1] === undefined ? undefined : Number(match![1]),
        field: match![2] ?? match![3],
      }));
}

/** The selector syntax, for help texts. */
export const SELECTORS_HELP = `a turn (3), a field of a turn (3.input) or a field of all turns (input); fields are ${FIELDS.join(', ')}`;

const written = ({ turn, field }: Selector): string =>
  [turn, field].filter((part) => part !== undefined).join('.');

export interface Redaction {
  /** Returns the event without the selected texts. Throws `configuration_invalid`. */
  apply(event: ShownEvent): ShownEvent;
  /** Call after the last event. Throws `configuration_invalid` for a selector without a match. */
  requireAllMet(): void;
}

/**
 * Removes texts from events and leaves their commitments. If any text is selected, the hashes of
 * the prompts and the ids of the provider are removed as well.
 */
export function createRedaction(selectors: readonly Selector[]): Redaction {
  const matched = new Set<Selector>();

  function selects(turn: unknown, field: string): boolean {
    const matching = selectors.filter(
      (selector) => (selector.turn ?? turn) === turn && (selector.field ?? field) === field,
    );
    for (const selector of matching) matched.add(selector);
    return matching.length > 0 || (selectors.length > 0 && ORACLES.has(field));
  }

  function requireProtected({ data, revision }: ShownEvent, turn: unknown): void {
    for (const field of FIELDS) {
      if (hasPlain(data as object, field) && selects(turn, field))
        throw new TurnlogError(
          'configuration_invalid',
          `The ${field} of the event at revision ${revision} was written before texts were protected: its hash covers the text itself, so that it can't be redacted.`,
        );
    }
    if (PLAIN_ORACLE.test(JSON.stringify(data)))
      throw new TurnlogError(
        'configuration_invalid',
        `The event at revision ${revision} holds a hash of the model's request in plain, as an earlier release wrote it: it would confirm a guess at a redacted text, so that nothing of the session can be redacted.`,
      );
  }

  return {
    apply(event) {
      if (selectors.length === 0) return event;
      const { turn } = event.data as { turn?: unknown };
      requireProtected(event, turn);
      const members = Object.entries(event.data as object).map(([name, member]) => {
        const replace = (text: ShownText, field: string): ShownText =>
          selects(turn, GROUPS.get(name) ?? field) ? withholdText(text) : text;
        return [name, mapTexts(member, replace, name)] as const;
      });
      return { ...event, data: Object.fromEntries(members) };
    },
    requireAllMet() {
      const unmatched = selectors.filter((selector) => !matched.has(selector));
      if (unmatched.length > 0)
        throw new TurnlogError(
          'configuration_invalid',
          `The session has no such text to redact: ${unmatched.map(written).join(', ')}. No bundle was written.`,
        );
    },
  };
}
