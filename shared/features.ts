/**
 * Every feature, once. Event types, stream names, projections, tables, erasures, error codes,
 * limits and public events follow from this list. What a manifest imports may not depend on them.
 */
import { accounts } from './accounts/manifest.ts';
import { agents } from './agents/manifest.ts';
import { audits } from './audit/manifest.ts';
import { chatTokens } from './chatTokens/manifest.ts';
import { erasure } from './erasure/manifest.ts';
import { retentions } from './erasure/retention/manifest.ts';
import { feed } from './feed/manifest.ts';
import { replays } from './replays/manifest.ts';
import { requests } from './requests/manifest.ts';
import { restoredLogs } from './restoredLogs/manifest.ts';
import { runs } from './runs/manifest.ts';
import { search } from './search/manifest.ts';
import { sessions } from './sessions/manifest.ts';
import { storage } from './storage/manifest.ts';
import { transparency } from './transparency/manifest.ts';
import { usage } from './usage/manifest.ts';
import { webhooks } from './webhooks/manifest.ts';

/** In the order of the tables, which the version of the read models covers. */
export const FEATURES = [
  accounts,
  agents,
  chatTokens,
  audits,
  restoredLogs,
  requests,
  sessions,
  runs,
  search,
  usage,
  storage,
  webhooks,
  replays,
  erasure,
  retentions,
  feed,
  transparency,
] as const;

type AnyFeature = (typeof FEATURES)[number];

type Part<Name extends string, Feature = AnyFeature> =
  Feature extends Readonly<Record<Name, infer Value>> ? Value : never;

type Intersection<Union> = (Union extends unknown ? (part: Union) => void : never) extends (
  part: infer Whole,
) => void
  ? Whole
  : never;

type Merged<Union> = { [Name in keyof Intersection<Union>]: Intersection<Union>[Name] };

const partsNamed = <const Name extends string>(name: Name): Part<Name>[] =>
  FEATURES.flatMap((feature) =>
    name in feature ? [(feature as unknown as Record<Name, Part<Name>>)[name]] : [],
  );

/** The members that the features have under that name, as one object. */
const merged = <const Name extends string>(name: Name): Merged<Part<Name>> =>
  Object.assign({}, ...partsNamed(name)) as Merged<Part<Name>>;

export type FeatureStream = Part<'stream'>;
export const FEATURE_STREAMS: readonly FeatureStream[] = partsNamed('stream');
export const FEATURE_TABLES = merged('tables');
export const FEATURE_OWNERS = merged('owners');
export const FEATURE_LIMITS = merged('limits');
export const INDEXED_TEXTS: readonly string[] = partsNamed('indexedTexts').flat();
export type FeatureErrorCode = Part<'errors'>[number];
export const FEATURE_PUBLIC_EVENTS = partsNamed('publicEvents')
  .map(({ schemas }) => schemas)
  .flat();
/** The kinds of streams whose events are public. */
export const PUBLIC_KINDS: readonly string[] = FEATURES.flatMap((feature) =>
  'publicEvents' in feature ? [feature.stream.kind] : [],
);
