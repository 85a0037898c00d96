import type { EventOf } from '../domain/schema.ts';
import { mergePatch } from '../domain/mergePatch.ts';
import type { SessionDescribed, SessionEvent } from './events.ts';

/** The title and labels of a session. */
export type Description = {
  title: string | null;
  /** Label values by name. */
  labels: Record<string, string>;
};

/** A change of a description; null removes a title or a label. */
export interface DescriptionChange {
  title?: string | null;
  /** null removes all labels. */
  labels?: Record<string, string | null> | null;
}

type Data = EventOf<typeof SessionDescribed>['data'];

/** The description of a session that was never described. */
export const NO_DESCRIPTION: Description = { title: null, labels: {} };

/** The labels, sorted by name. */
const sorted = (labels: Readonly<Record<string, string>>): [string, string][] =>
  Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1));

/** Applies a change (RFC 7396). */
export function applyDescriptionChange(
  before: Description,
  change: DescriptionChange,
): Description {
  const { title = null, labels = {} } = mergePatch(before, change) as Partial<Description>;
  return { title, labels: Object.fromEntries(sorted(labels)) };
}

/** The description in an event, without erased texts. */
export const descriptionFromEvent = ({ title, labels }: Data): Description => ({
  title: title ?? null,
  labels: Object.fromEntries(labels.map(({ name, value }) => [name, value])),
});

const dataOf = ({ title, labels }: Description): Data => ({
  ...(title !== null && { title }),
  labels: sorted(labels).map(([name, value]) => ({ name, value })),
});

/**
 * The event of a changed description; none if it is unchanged. `last_turn` is the last turn, which has
 * ended: the event repeats it, so that the next command need not read earlier events.
 */
export function descriptionEvents(
  before: Description,
  after: Description,
  last_turn: number,
): SessionEvent[] {
  const data = dataOf(after);
  return JSON.stringify(dataOf(before)) === JSON.stringify(data)
    ? []
    : [{ type: 'session.described.v1', data: { ...data, last_turn } }];
}
