import { FEATURE_STREAMS, type FeatureStream } from '../features.ts';
import type { EventOf } from '../domain/schema.ts';
import { streamKind } from './streams.ts';

/** Every event type that this version of Turnlog writes. */
export const eventSchemas = FEATURE_STREAMS.flatMap((stream): FeatureStream['events'][number][] => [
  ...stream.events,
]);

export type DomainEvent = EventOf<(typeof eventSchemas)[number]>;

const ERASED: ReadonlySet<string> = new Set(
  FEATURE_STREAMS.flatMap((stream) => ('erasure' in stream ? [`${stream.kind}.erased.v1`] : [])),
);

/**
 * True for the type of an event that erases its stream. It is the stream's last event, and it can
 * follow any event, damaged or not.
 */
export const isErasure = (type: string): boolean => ERASED.has(type);

export type StreamKind = FeatureStream['kind'];
export const STREAM_KINDS: readonly StreamKind[] = FEATURE_STREAMS.map(({ kind }) => kind);

/** Prefixes of our streams' names: other programs may write to the same log. */
export const STREAM_PREFIXES: readonly string[] = STREAM_KINDS.map((kind) => `${kind}-`);

const OPENINGS: ReadonlyMap<string, string> = new Map(
  FEATURE_STREAMS.flatMap((stream): [string, string][] =>
    'opening' in stream ? [[stream.kind, stream.opening]] : [],
  ),
);

/** The type that only a stream's first event has; undefined when any type may be first. */
export const findOpeningType = (stream: string): string | undefined =>
  OPENINGS.get(streamKind(stream));

/** The prefix of event types by stream kind; the longest matching prefix applies. */
const TYPE_PREFIXES = FEATURE_STREAMS.map((stream) => ({
  kind: stream.kind,
  prefix: 'typePrefix' in stream ? stream.typePrefix : `${stream.kind}.`,
})).toSorted((a, b) => b.prefix.length - a.prefix.length);

/** True when the stream may hold events of the type, including types of newer releases. */
export const belongsIn = (stream: string, type: string): boolean =>
  TYPE_PREFIXES.find(({ prefix }) => type.startsWith(prefix))?.kind === streamKind(stream);
