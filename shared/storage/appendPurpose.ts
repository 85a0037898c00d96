import { isAudit } from '../audit/events.ts';
import { isErasure } from '../eventlog/eventTypes.ts';
import { FEATURE_STREAMS } from '../features.ts';

/**
 * Why an append makes the log grow: at the will of a client, for an entry of the audit, to
 * reserve what a repeatable request cancels or erases, or for events that are always
 * recorded.
 */
export type AppendPurpose = 'client' | 'audit' | 'cancel' | 'always';

const ALWAYS_RECORDED: ReadonlySet<string> = new Set(
  FEATURE_STREAMS.flatMap((stream): readonly string[] =>
    'alwaysRecorded' in stream ? stream.alwaysRecorded : [],
  ),
);

/** An event with its data, or the JSON of it. */
interface PurposefulEvent {
  type: string;
  data: string | object;
}

/** The operations of the API that cancel or erase have names that begin so. */
const CANCEL_OPERATION = /"operation":"(cancel|erase)/;
const isCancelRequest = ({ type, data }: PurposefulEvent): boolean =>
  type === 'request.begun.v1' &&
  CANCEL_OPERATION.test(typeof data === 'string' ? data : JSON.stringify(data));

/**
 * Classifies an append by its events. Types that no feature lists are a client's, so a new type has
 * a quota unless its feature decides otherwise.
 */
export function classifyAppend(events: readonly PurposefulEvent[]): AppendPurpose {
  const limited = events.filter(({ type }) => !ALWAYS_RECORDED.has(type) && !isErasure(type));
  if (limited.length === 0) return 'always';
  if (limited.every(isCancelRequest)) return 'cancel';
  return limited.every(isAudit) ? 'audit' : 'client';
}
