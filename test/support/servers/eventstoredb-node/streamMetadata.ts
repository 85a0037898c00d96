import { DELETED_STREAM } from './types.ts';

/** Names of users and groups, as an access control list has them: one, or several. */
export type Names = string | readonly string[];

export interface Acl {
  $r?: Names;
  $w?: Names;
  $d?: Names;
  $mr?: Names;
  $mw?: Names;
}

/** What the last event of `$$<stream>` says about a stream. */
export interface StreamMetadata {
  /** Revisions before this one are hidden; DELETED_STREAM when the stream is softly deleted. */
  truncateBefore: bigint;
  maxCount: bigint | undefined;
  maxAgeMs: number | undefined;
  acl: Acl;
}

const NONE: StreamMetadata = {
  truncateBefore: 0n,
  maxCount: undefined,
  maxAgeMs: undefined,
  acl: {},
};

/** The metadata of a metadata stream cannot be set: it keeps one event. */
const OF_METADATA: StreamMetadata = { ...NONE, maxCount: 1n };

/** Streams whose metadata are kept at hand. */
const CACHED = 100_000;

export const isMetadataStream = (stream: string): boolean => stream.startsWith('$$');

function parse(json: string): StreamMetadata {
  let written: { $tb?: number; $maxCount?: number; $maxAge?: number; $acl?: Acl };
  try {
    written = JSON.parse(json) as typeof written;
  } catch {
    // What is no JSON sets nothing, as on a server.
    return NONE;
  }
  const { $tb = 0, $maxCount, $maxAge, $acl = {} } = written;
  return {
    // The largest number is beyond what JSON.parse keeps exact; nothing else comes near it.
    truncateBefore: $tb >= Number(DELETED_STREAM) ? DELETED_STREAM : BigInt($tb),
    maxCount: $maxCount === undefined ? undefined : BigInt($maxCount),
    maxAgeMs: $maxAge === undefined ? undefined : $maxAge * 1000,
    acl: $acl,
  };
}

/** Stream metadata, read once and kept until the stream's metadata are written. */
export function createStreamMetadata(lastData: (stream: string) => Uint8Array | undefined) {
  const cache = new Map<string, StreamMetadata>();

  function of(stream: string): StreamMetadata {
    const known = cache.get(stream);
    if (known) return known;
    if (isMetadataStream(stream)) return OF_METADATA;
    const data = lastData(`$$${stream}`);
    const metadata = data === undefined ? NONE : parse(Buffer.from(data).toString());
    if (cache.size >= CACHED) cache.clear();
    cache.set(stream, metadata);
    return metadata;
  }

  return {
    of,
    /** To be called for every stream that is written. */
    written(stream: string): void {
      if (isMetadataStream(stream)) cache.delete(stream.slice(2));
    },
    clear: () => cache.clear(),
  };
}
