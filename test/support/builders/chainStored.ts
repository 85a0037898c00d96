import { chainEvents, type Authorship, type StreamHead } from '../../../shared/eventlog/append.ts';
import { canonicalJson } from '../../../shared/eventlog/canonicalJson.ts';
import type { NewEvent } from '../../../shared/eventlog/event.ts';
import { withoutBoxes } from '../../../shared/eventlog/encryption/protectedJson.ts';

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
