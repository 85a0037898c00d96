import type { PublicEvent } from '../../shared/publicEvents/publicEvent.ts';

/**
 * A public event as JSON: a CloudEvent in the structured mode, with the attributes and the data that
 * consumers of Kafka get.
 */
export const bodyOf =
  (source: string) =>
  (event: PublicEvent): string =>
    JSON.stringify({
      specversion: '1.0',
      id: event.id,
      type: event.type,
      source,
      subject: event.key,
      time: event.time,
      datacontenttype: 'application/json',
      partitionkey: event.key,
      accountid: event.account_id,
      streamrevision: String(event.revision),
      position: event.position,
      correlationid: event.correlation_id,
      causationid: event.causation_id,
      traceparent: event.traceparent,
      data: event.data,
    });
