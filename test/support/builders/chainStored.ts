import { chainEvents, type Authorship, type StreamHead } from '../../../shared/eventlog/append.ts';
import { canonicalJson } from '../../../shared/eventlog/canonicalJson.ts';
import type { NewEvent } from '../../../shared/eventlog/event.ts';

const COVERED = /\{"box":"[\w-]{16}\.[\w-]+",("sha256":"[0-9a-f]{64}"\})/g;

/** The part of the data that the event's hash covers: the commitments without the ciphertexts. */
export const withoutBoxes = (data: string): string => data.replace(COVERED, '{$1');

/** Continues a chain with an event whose data has its boxes already, as a store has it. */
export function chainStored(
  stream: string,
  head: StreamHead,
  event: Pick<NewEvent, 'id' | 'type' | 'data'>,
  authorship: Authorship,
) {
  const data = canonicalJson(event.data);
  const bare = { ...event, data: JSON.parse(withoutBoxes(data)) as object };
  const chained = chainEvents(stream, head, [bare], authorship);
  return { event: { ...chained.encoded[0]!, data }, head: chained.head };
}
