import type { EventOf } from '../domain/schema.ts';
import type { SessionDescribed, SessionEvent } from './events.ts';

/** What persons call a session. */
export type Description = {
  title: string | null;
  /** By their names. */
  labels: Record<string, string>;
};

/** What is to change of it; null takes a title or a label away. */
export interface DescriptionChange {
  title?: string | null;
  labels?: Record<string, string | null>;
}

type Data = EventOf<typeof SessionDescribed>['data'];

/** A session that nobody has described. */
export const NO_DESCRIPTION: Description = { title: null, labels: {} };

/** The labels in the order of their names. */
const sorted = (labels: Readonly<Record<string, string | null>>): [string, string][] =>
  Object.entries(labels)
    .filter((label): label is [string, string] => label[1] !== null)
    .toSorted(([a], [b]) => (a < b ? -1 : 1));

/** What a change leaves (RFC 7396). */
export const applyDescriptionChange = (
  before: Description,
  { title = before.title, labels = {} }: DescriptionChange,
): Description => ({
  title,
  labels: Object.fromEntries(sorted({ ...before.labels, ...labels })),
});

/** What an event says that a session is called. Texts that were erased say nothing. */
export const descriptionFromEvent = ({ title, labels }: Data): Description => ({
  title: title ?? null,
  labels: Object.fromEntries(labels.map(({ name, value }) => [name, value])),
});

const dataOf = ({ title, labels }: Description): Data => ({
  ...(title !== null && { title }),
  labels: sorted(labels).map(([name, value]) => ({ name, value })),
});

/** What says that a session is called otherwise than before; nothing where it is not. */
export function descriptionEvents(before: Description, after: Description): SessionEvent[] {
  const data = dataOf(after);
  return JSON.stringify(dataOf(before)) === JSON.stringify(data)
    ? []
    : [{ type: 'session.described.v1', data }];
}
