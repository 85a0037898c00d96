import { isReadAudit } from '../audit/events.ts';
import { isErasure } from '../eventlog/eventTypes.ts';
import { FEATURE_STREAMS } from '../features.ts';
import type { EncodedEvent } from '../ports/eventStore.ts';

/**
 * Why an append makes the log grow: at the will of a client, to record a read in the audit, to
 * reserve the turn or replay that a repeatable request cancels, or for events that are always
 * recorded.
 */
export type AppendPurpose = 'client' | 'audit' | 'cancel' | 'always';

const ALWAYS_RECORDED: ReadonlySet<string> = new Set(
  FEATURE_STREAMS.flatMap((stream): readonly string[] =>
    'alwaysRecorded' in stream ? stream.alwaysRecorded : [],
  ),
);

/** The operations of the API that cancel have names that begin so. */
const isCancelRequest = ({ type, data }: Pick<EncodedEvent, 'type' | 'data'>): boolean =>
  type === 'request.begun.v1' && data.includes('"operation":"cancel');

/**
 * Classifies an append by its events. Types that no feature lists are a client's, so a new type has
 * a quota unless its feature decides otherwise.
 */
export function purposeOf(events: readonly Pick<EncodedEvent, 'type' | 'data'>[]): AppendPurpose {
  const limited = events.filter(
    ({ type, data }) =>
      !ALWAYS_RECORDED.has(type) &&
      !isErasure(type) &&
      (type !== 'account.audited.v1' || isReadAudit({ type, data })),
  );
  if (limited.length === 0) return 'always';
  if (limited.every(isCancelRequest)) return 'cancel';
  return limited.every(isReadAudit) ? 'audit' : 'client';
}
