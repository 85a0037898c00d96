import type { ErasedStream } from '../../../shared/erasure/eraseStream.ts';

/** An erasure as a client is told of it; `receipt` where there is one yet. */
export const presentErasure = (
  { erased_at, event }: ErasedStream,
  receipt: string | undefined,
) => ({ erased_at, event, receipt: receipt ?? null });
