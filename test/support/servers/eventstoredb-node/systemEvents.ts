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

export const EPOCHS = '$epoch-information';

/** What a leader writes first: that its time begins here. */
export const epochInformation = (epochNumber: number, epochPosition: bigint): Proposed =>
  event(EPOCHS, { epochNumber, epochPosition: Number(epochPosition) });

export const SCAVENGES_METADATA = '$$$scavenges';

export const scavengesMetadata = (): Proposed =>
  event('$metadata', { $maxCount: 1, $maxAge: 30 * 24 * 3600 });

/**
 * What a server writes to a fresh log before the first append of a client: readers of `$all` meet
 * these events.
 */
export const systemEvents = (): { stream: string; event: Proposed }[] => [
  { stream: EPOCHS, event: epochInformation(0, 0n) },
  { stream: SCAVENGES_METADATA, event: scavengesMetadata() },
];
