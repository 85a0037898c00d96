/**
 * Texts in events prepared for verification: each text is replaced by its commitment, with salt and
 * text if it is disclosed. docs/proof.md specifies the shapes.
 */
import { canonicalJson } from '../../eventlog/canonicalJson.ts';
import { eventHash } from '../../eventlog/hashChain.ts';
import type { RecordedEvent } from '../../eventlog/event.ts';

/** A commitment, with salt and text when disclosed, or `erased` when its key was destroyed. */
export interface ShownText {
  sha256: string;
  salt?: string;
  text?: string;
  erased?: true;
}

/** An event without its position, which has no meaning outside the store. */
export type ShownEvent = Omit<RecordedEvent, 'position'>;

const SHAPES: ReadonlySet<string> = new Set(['sha256', 'salt,sha256,text', 'erased,sha256']);
const MOST_MEMBERS = 3;
const SHA256 = /^[0-9a-f]{64}$/;

/** True only for the replacement of a text in a shown event. */
function isShownText(value: object): value is ShownText {
  const { sha256, salt = '', text = '', erased = true } = value as Record<string, unknown>;
  if (typeof sha256 !== 'string' || !SHA256.test(sha256)) return false;
  if (typeof salt !== 'string' || typeof text !== 'string' || erased !== true) return false;
  const members = Object.keys(value);
  return members.length <= MOST_MEMBERS && SHAPES.has(members.toSorted().join(','));
}

/** Replaces every text in a value; `field` is the name of the member that holds it. */
export function mapTexts(
  value: unknown,
  replace: (text: ShownText, field: string) => unknown,
  field = '',
): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, replace, field));
  if (isShownText(value)) return replace(value, field);
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, mapTexts(member, replace, name)]),
  );
}

/** Reduces a text to its commitment. */
export const withholdText = ({ sha256, erased }: ShownText): ShownText =>
  erased ? { sha256, erased } : { sha256 };

/** Computes the hash of an event from its data with each text reduced to the bare commitment. */
export function committedHash({ metadata, ...event }: ShownEvent, data: unknown): string {
  const { prev_hash, hash: _claimed, ...covered } = metadata;
  return eventHash(prev_hash, {
    ...event,
    data: canonicalJson(data),
    metadata: canonicalJson(covered),
  });
}

/** Computes the hash of an event, which does not depend on the disclosed texts. */
export const shownEventHash = (event: ShownEvent): string =>
  committedHash(
    event,
    mapTexts(event.data, ({ sha256 }) => ({ sha256 })),
  );
