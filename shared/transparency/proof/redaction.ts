import { TurnlogError } from '../../lib/errors/turnlogError.ts';
import { mapTexts, withheld, type ShownEvent } from './shownTexts.ts';

/** The texts that can be redacted. */
const FIELDS = ['input', 'output', 'content', 'arguments', 'result', 'message'] as const;
/** An unsalted hash of a prompt tells whether a guess at the texts in it is right. */
const ORACLES: ReadonlySet<string> = new Set(['request_sha256']);

/** A turn, a field of a turn, or a field of all turns. */
export interface Selector {
  turn: number | undefined;
  field: string | undefined;
}

const SELECTOR = new RegExp(
  `^(?:([1-9]\\d{0,8})(?:\\.(${FIELDS.join('|')}))?|(${FIELDS.join('|')}))$`,
);

/** Selectors of `3,4.input,result`; undefined for what is none. */
export function parseSelectors(text: string): Selector[] | undefined {
  const found = text.split(',').map((one) => SELECTOR.exec(one.trim()));
  return found.some((one) => one === null)
    ? undefined
    : found.map((one) => ({
        turn: one![1] === undefined ? undefined : Number(one![1]),
        field: one![2] ?? one![3],
      }));
}

/** What selectors may be, for people. */
export const SELECTORS_HELP = `a turn (3), a field of a turn (3.input) or a field of all turns (input); fields are ${FIELDS.join(', ')}`;

const written = ({ turn, field }: Selector): string =>
  [turn, field].filter((part) => part !== undefined).join('.');

export interface Redaction {
  /** The event without the texts that are selected. Errors: `configuration_invalid`. */
  apply(event: ShownEvent): ShownEvent;
  /** To be asked in the end. Errors: `configuration_invalid` for a selector that met no text. */
  requireAllMet(): void;
}

/**
 * Takes texts out of events, and leaves their commitments. With any text, the hashes of the prompts
 * are taken out.
 */
export function createRedaction(selectors: readonly Selector[]): Redaction {
  const met = new Set<Selector>();

  function selects(turn: unknown, field: string): boolean {
    const found = selectors.filter(
      (one) => (one.turn ?? turn) === turn && (one.field ?? field) === field,
    );
    for (const one of found) met.add(one);
    return found.length > 0 || (selectors.length > 0 && ORACLES.has(field));
  }

  function requireProtected({ data, revision }: ShownEvent, turn: unknown): void {
    for (const field of FIELDS) {
      const text = (data as Partial<Record<string, unknown>>)[field];
      if (typeof text === 'string' && text !== '' && selects(turn, field))
        throw new TurnlogError(
          'configuration_invalid',
          `The ${field} of the event at revision ${revision} was written before texts were protected: its hash covers the text itself, so that it can't be redacted.`,
        );
    }
  }

  return {
    apply(event) {
      if (selectors.length === 0) return event;
      const { turn } = event.data as { turn?: unknown };
      requireProtected(event, turn);
      const data = mapTexts(event.data, (text, field) =>
        selects(turn, field) ? withheld(text) : text,
      );
      return { ...event, data };
    },
    requireAllMet() {
      const missed = selectors.filter((one) => !met.has(one));
      if (missed.length > 0)
        throw new TurnlogError(
          'configuration_invalid',
          `The session has no such text to redact: ${missed.map(written).join(', ')}. No bundle was written.`,
        );
    },
  };
}
