import type { Erasable } from '../domain/feature.ts';
import type { DomainEvent } from '../eventlog/eventTypes.ts';
import { streamKind } from '../eventlog/streams.ts';
import { FEATURE_STREAMS } from '../features.ts';

const ERASABLE = new Map(
  FEATURE_STREAMS.flatMap((stream): [string, unknown][] =>
    'erasure' in stream ? [[stream.kind, stream.erasure]] : [],
  ),
);

/** How a stream is erased. Throws a plain Error for a kind without texts. */
export function erasableOf(stream: string): Erasable<unknown, DomainEvent> {
  const erasure = ERASABLE.get(streamKind(stream));
  if (!erasure) throw new Error(`streams such as ${stream} have no texts`);
  return erasure as Erasable<unknown, DomainEvent>;
}
