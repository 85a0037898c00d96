import type { Proposed } from './types.ts';

/** A fresh log begins with the record of its first epoch, which is no event and ends here. */
export const FIRST_EVENT_POSITION = 188n;

const event = (type: string, data: object): Proposed => ({
  id: crypto.randomUUID(),
  type,
  contentType: 'application/json',
  data: Buffer.from(JSON.stringify(data)),
  metadata: new Uint8Array(),
});

/** What a server writes to a fresh log before the first append of a client: readers of `$all` meet these events. */
export const systemEvents = (): { stream: string; event: Proposed }[] => [
  { stream: '$epoch-information', event: event('$epoch-information', { epochNumber: 0, epochPosition: 0 }) },
  { stream: '$$$scavenges', event: event('$metadata', { $maxCount: 1, $maxAge: 30 * 24 * 3600 }) },
];
