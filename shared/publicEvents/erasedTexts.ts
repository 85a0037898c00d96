import { isProtectedText } from '../eventlog/encryption/protectedText.ts';
import type { PublicEvent } from './publicEvent.ts';

/**
 * The commitments in the data of a stored event, with the JSON pointers (RFC 6901) of their texts.
 */
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
 * Marks a public event as erased and adds the commitment of each public text. `stored` is the data
 * in the log, which has the same field names.
 */
export function withErasedTexts(event: PublicEvent, stored: unknown): PublicEvent {
  const commitments = commitmentsIn(stored).filter(
    ([pointer]) => valueAt(event.data, pointer) !== undefined,
  );
  if (commitments.length === 0) return event;
  const erased = { erased: true, commitments: Object.fromEntries(commitments) };
  return { ...event, data: { ...event.data, ...erased } as PublicEvent['data'] };
}

/** True for an event that reports the erasure of everything under its key. */
export const reportsErasure = ({ type }: Pick<PublicEvent, 'type'>): boolean =>
  type === 'turnlog.agent.erased.v1' || type === 'turnlog.session.erased.v1';
