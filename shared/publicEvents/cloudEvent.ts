import type { PublicEvent } from './publicEvent.ts';

/**
 * The attributes of a public event as a CloudEvent (CloudEvents 1.0), without `specversion` and
 * `data`. They are the same on every channel.
 */
export const buildAttributes = (event: PublicEvent, source: string) => ({
  id: event.id,
  type: event.type,
  source,
  subject: event.key,
  time: event.time,
  datacontenttype: 'application/json',
  partitionkey: event.key,
  accountid: event.account_id,
  streamrevision: event.revision,
  position: event.position,
  correlationid: event.correlation_id,
  causationid: event.causation_id,
  traceparent: event.traceparent,
  ...(event.restored !== undefined && { restored: event.restored }),
});

/**
 * A public event as one JSON object: the structured mode of CloudEvents' JSON format
 * (https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md).
 */
export const toCloudEvent = (event: PublicEvent, source: string) => ({
  specversion: '1.0' as const,
  ...buildAttributes(event, source),
  data: event.data,
});
