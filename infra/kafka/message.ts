import { CloudEvent, Kafka } from 'cloudevents';
import { attributesOf } from '../../shared/publicEvents/cloudEvent.ts';
import type { PublicEvent } from '../../shared/publicEvents/publicEvent.ts';
import type { TextMessage } from './batching.ts';

/**
 * The binding also writes what an event does not have, and the content type a second time under a
 * name that the specification has not.
 */
const toHeaders = (headers: Record<string, unknown>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers as Record<string, string | number | undefined>).flatMap(
      ([name, value]) =>
        value === undefined || name === 'ce_datacontenttype' ? [] : [[name, String(value)]],
    ),
  );

/**
 * What follows the last event of a key that was erased, in a compacted topic: the brokers let go of
 * all that they had of the key, and in time of the tombstone.
 */
export const toTombstone = ({ key }: PublicEvent): TextMessage => ({ key, value: null });

/**
 * The Kafka message of a public event: a CloudEvent in binary mode. shared/publicEvents/headers.ts
 * describes the headers.
 */
export function toMessage(event: PublicEvent, source: string): TextMessage & { value: string } {
  const cloudEvent = new CloudEvent({
    ...attributesOf(event, source),
    data: JSON.stringify(event.data),
  });
  const { headers, value } = Kafka.binary(cloudEvent);
  return { key: event.key, value: value as string, headers: toHeaders(headers) };
}
