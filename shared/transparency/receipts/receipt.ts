/** The receipt of an erasure, which docs/proof.md specifies. */
import type { EventProof } from '../proof/proveEvent.ts';
import type { ShownEvent } from '../proof/shownTexts.ts';
import { streamId, streamKind } from '../../eventlog/streams.ts';

/** An erasure as it is shown, without texts. */
export type ShownErasure = ShownEvent & { data: object };

/** Names what was erased, and proves that its erasure is in the log. */
export interface ErasureReceipt {
  turnlog_receipt: 1;
  subject: { stream: string; kind: string; id: string };
  /** How many events the subject had: revisions 0 to this one less 1. The erasure follows them. */
  events: number;
  event: ShownErasure;
  /** The content of its leaf. */
  leaf: EventProof['leaf'];
  /** C2SP tlog-proof, which ends with the checkpoint. */
  proof: string;
}

/** The subject of an erasure by the name of its stream. */
export const toReceiptSubject = (stream: string): ErasureReceipt['subject'] => ({
  stream,
  kind: streamKind(stream),
  id: streamId(stream),
});

export const createReceipt = (
  event: ShownErasure,
  { leaf, proof }: Pick<EventProof, 'leaf' | 'proof'>,
): ErasureReceipt => ({
  turnlog_receipt: 1,
  subject: toReceiptSubject(event.stream),
  events: event.revision,
  event,
  leaf,
  proof,
});
