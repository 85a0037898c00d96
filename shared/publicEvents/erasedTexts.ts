import { isProtectedText } from '../eventlog/encryption/protectedText.ts';
import type { PublicEvent } from './publicEvent.ts';

/** The commitments in a stored event's data, by the JSON pointers (RFC 6901) of their texts. */
function commitmentsIn(data: unknown, pointer = ''): [string, string][] {
  if (typeof data !== 'object' || data === null) return [];
  if (isProtectedText(data)) return [[pointer, data.sha256]];
  return Object.entries(data).flatMap(([name, member]) =>
    commitmentsIn(member, `${pointer}/${name}`),
  );
}

const valueAt = (data: unknown, pointer: string): unknown =>
  pointer
    .split('/')
    .slice(1)
    .reduce((value, name) => (value as Record<string, unknown> | undefined)?.[name], data);

/**
 * An event whose texts were erased, as it is published: it says so, and what stood for each text
 * that is public. `stored` is the data as it stands in the log, whose fields have the same names.
 */
export function withErasedTexts(event: PublicEvent, stored: unknown): PublicEvent {
  const commitments = commitmentsIn(stored).filter(
    ([pointer]) => valueAt(event.data, pointer) !== undefined,
  );
  if (commitments.length === 0) return event;
  const erased = { erased: true, commitments: Object.fromEntries(commitments) };
  return { ...event, data: { ...event.data, ...erased } as PublicEvent['data'] };
}

/** True for what says that all of its key was erased. */
export const tellsErasure = ({ type }: Pick<PublicEvent, 'type'>): boolean =>
  type === 'turnlog.agent.erased.v1' || type === 'turnlog.session.erased.v1';
