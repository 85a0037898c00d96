/** The files of a bundle; docs/proof.md specifies them. */
import { Type, type Static } from 'typebox';
import { lazyValidator } from '../../lib/validation/validation.ts';

/** In this order, and no others. The last one has a line for each event. */
export const BUNDLE_FILES = [
  'manifest',
  'vkey',
  'checkpoint',
  'session.tlog-proof',
  'events.jsonl',
] as const;
export type BundleFileName = (typeof BUNDLE_FILES)[number];
export type SmallFileName = Exclude<BundleFileName, 'events.jsonl'>;

const Manifest = Type.Object(
  {
    turnlog_bundle: Type.Literal(1),
    session_id: Type.String(),
    events: Type.Integer({ minimum: 1 }),
  },
  { additionalProperties: false },
);
export type Manifest = Static<typeof Manifest>;

/** True for what a manifest says. */
export const isManifest = lazyValidator(Manifest);

/** A file of a bundle as it is read. */
export interface BundleFile {
  name: string;
  /** False for whatever has another header than the files of a bundle: a link, a folder. */
  isFile: boolean;
  bytes: number;
  content: AsyncIterable<Uint8Array>;
}
