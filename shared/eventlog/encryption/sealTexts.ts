import { eventSchemas } from '../eventTypes.ts';
import { isProtectedTextSchema } from '../../domain/schema.ts';
import { TurnlogError } from '../../lib/errors/turnlogError.ts';
import type { NewEvent } from '../event.ts';
import type { Keyring } from './keyring.ts';
import { commitText, looksProtected, type DisclosedText, type TextKey } from './protectedText.ts';

/** Where the protected texts of a value are: it is one, or they are in its items or members. */
type Texts = 'text' | { items: Texts } | { members: ReadonlyMap<string, Texts> };

/** What of a JSON Schema tells where texts are. */
interface Schema {
  items?: Schema;
  properties?: Readonly<Record<string, Schema>>;
}

function textsIn(schema: Schema): Texts | undefined {
  if (isProtectedTextSchema(schema)) return 'text';
  const items = schema.items && textsIn(schema.items);
  if (items) return { items };
  const members = Object.entries(schema.properties ?? {}).flatMap(([name, member]) => {
    const texts = textsIn(member);
    return texts ? [[name, texts] as const] : [];
  });
  return members.length > 0 ? { members: new Map(members) } : undefined;
}

/** By type: where its data has protected texts. */
const TEXTS = new Map(
  eventSchemas.map(({ properties: { type, data } }) => [
    type.const as string,
    textsIn(data as Schema),
  ]),
);

type Commit = (text: string) => unknown;

/** Errors: `event_invalid` for what readers would take for a protected text. */
function committed(value: unknown, texts: Texts | undefined, commitTo: Commit): unknown {
  if (typeof value === 'string') return texts === 'text' ? commitTo(value) : value;
  if (typeof value !== 'object' || value === null) return value;
  if (looksProtected(value))
    throw new TurnlogError(
      'event_invalid',
      'The data has an object that looks like a protected text: {"sha256": …}.',
    );
  if (Array.isArray(value)) {
    const items = typeof texts === 'object' && 'items' in texts ? texts.items : undefined;
    return value.map((item) => committed(item, items, commitTo));
  }
  const members = typeof texts === 'object' && 'members' in texts ? texts.members : undefined;
  const copy: Record<string, unknown> = {};
  // In canonical order, in which it is written at the least cost.
  for (const name of Object.keys(value).toSorted())
    copy[name] = committed((value as typeof copy)[name], members?.get(name), commitTo);
  return copy;
}

/** Events that only commit to their texts, and the key that these are to be closed with. */
export interface SealedEvents {
  events: NewEvent[];
  /** Undefined where the events have no texts and none was given. */
  key: TextKey | undefined;
}

/**
 * Commits to the texts of events, which are to be closed with the key of their stream or, where it has
 * none yet, with one of its own. Each time is another salt: what is appended again must have been sealed
 * once.
 * Errors: `event_invalid` for data that holds what looks like a protected text, `store_unavailable`
 * where a new key is needed.
 */
export async function sealEvents(
  keys: Pick<Keyring, 'issueKey'>,
  known: TextKey | undefined,
  events: readonly NewEvent[],
): Promise<SealedEvents> {
  const hasTexts = events.some(({ type }) => TEXTS.get(type) !== undefined);
  const key = known ?? (hasTexts ? await keys.issueKey() : undefined);
  const sealed = (event: NewEvent): NewEvent => {
    const texts: DisclosedText[] = [];
    const data = committed(event.data, TEXTS.get(event.type), (text) => {
      if (!text.isWellFormed()) throw new TypeError('a text has half of a character');
      const disclosed = commitText(text);
      texts.push(disclosed);
      return { sha256: disclosed.sha256 };
    }) as object;
    return { ...event, data, ...(key && texts.length > 0 && { toClose: { texts, key } }) };
  };
  return { events: events.map(sealed), key };
}
