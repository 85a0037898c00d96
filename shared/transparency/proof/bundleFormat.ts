/** The files of a bundle, as specified in docs/proof.md. */
import type { Static } from 'typebox';
import { Type } from '../../domain/jsonSchema.ts';
import { lazyValidator } from '../../lib/validation/validation.ts';

/** All files of a bundle, in this order. The last file has one line per event. */
export const BUNDLE_FILES = [
  'manifest',
  'vkey',
  'checkpoint',
  'session.tlog-proof',
  'consistency',
  'events.jsonl',
] as const;
export type BundleFileName = (typeof BUNDLE_FILES)[number];
export type SmallFileName = Exclude<BundleFileName, 'events.jsonl'>;

const Manifest = Type.Object(
  {
    turnlog_bundle: Type.Literal(2),
    session_id: Type.String(),
    events: Type.Integer({ minimum: 1 }),
  },
  { additionalProperties: false },
);
export type Manifest = Static<typeof Manifest>;

/** Validates the content of a manifest. */
export const isManifest = lazyValidator(Manifest);

/** A line of `events.jsonl`: an event, its place in the log, and the hashes that prove it there. */
export interface BundleLine {
  event: unknown;
  /** Hashes in base64, the leaf's sibling first, as `createInclusionChecker` expects them. */
  hashes: string[];
  leaf: number;
}

const LINE_MEMBERS = 'event,hashes,leaf';

export const isBundleLine = (value: unknown): value is BundleLine => {
  if (typeof value !== 'object' || value === null) return false;
  const { hashes, leaf } = value as Partial<Record<string, unknown>>;
  return (
    Object.keys(value).toSorted().join(',') === LINE_MEMBERS &&
    Array.isArray(hashes) &&
    hashes.every((hash) => typeof hash === 'string') &&
    Number.isSafeInteger(leaf)
  );
};

/** A bundle entry while it is read. */
export interface BundleFile {
  name: string;
  /** False for other archive entries, such as links and folders. */
  isFile: boolean;
  bytes: number;
  content: AsyncIterable<Uint8Array>;
}
