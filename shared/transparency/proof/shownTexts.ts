/**
 * Texts as events show them to whoever may check them: in place of each stands its commitment,
 * alone or with what discloses it. docs/proof.md specifies the shapes.
 */
import { canonicalJson } from '../../eventlog/canonicalJson.ts';
import { eventHash } from '../../eventlog/hashChain.ts';
import type { RecordedEvent } from '../../eventlog/event.ts';

/** A commitment; with salt and text where it is disclosed, and `erased` where its key is gone. */
export interface ShownText {
  sha256: string;
  salt?: string;
  text?: string;
  erased?: true;
}

/** An event as it is shown: no position, since that means nothing outside the store. */
export type ShownEvent = Omit<RecordedEvent, 'position'>;

const SHAPES: ReadonlySet<string> = new Set(['sha256', 'salt,sha256,text', 'erased,sha256']);
const MOST_MEMBERS = 3;
const SHA256 = /^[0-9a-f]{64}$/;

/** True for what stands in a shown event in place of a text, and for nothing else. */
function isShownText(value: object): value is ShownText {
  const { sha256, salt = '', text = '', erased = true } = value as Record<string, unknown>;
  if (typeof sha256 !== 'string' || !SHA256.test(sha256)) return false;
  if (typeof salt !== 'string' || typeof text !== 'string' || erased !== true) return false;
  const members = Object.keys(value);
  return members.length <= MOST_MEMBERS && SHAPES.has(members.toSorted().join(','));
}

/** A value with each of its texts replaced; `field` is the name of the member that holds it. */
export function mapTexts(
  value: unknown,
  replace: (text: ShownText, field: string) => unknown,
  field = '',
): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((one) => mapTexts(one, replace, field));
  if (isShownText(value)) return replace(value, field);
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [name, mapTexts(one, replace, name)]),
  );
}

/** What is left of a text that is not disclosed. */
export const withheld = ({ sha256, erased }: ShownText): ShownText =>
  erased ? { sha256, erased } : { sha256 };

/** The hash that an event has by its content, whatever is disclosed of its texts. */
export function shownEventHash({ data, metadata, ...event }: ShownEvent): string {
  const { prev_hash, hash: _claimed, ...covered } = metadata;
  return eventHash(prev_hash, {
    ...event,
    data: canonicalJson(mapTexts(data, ({ sha256 }) => ({ sha256 }))),
    metadata: canonicalJson(covered),
  });
}
