/** In what the servers of one version differ from those of another, as `records/` shows. */
export interface ServerVersion {
  /** What ServerFeatures calls the server. */
  reported: string;
  /** The most bytes of an append, and of one event in it. */
  maxAppendSize: number;
  maxEventSize: number;
  /** Whether the type of an event counts towards the size of its append. */
  countsTypes: boolean;
  /** A live subscriber that leaves too much waiting is ended, or caught up again from the log. */
  slowConsumer: 'ended' | 'caught_up_again';
  /** Whether a subscription that another node must serve is confirmed before it is refused. */
  confirmsRefused: boolean;
  /** The checkpoint at the end of a catch-up that matched nothing within its only page. */
  emptyCatchUp: 'no_checkpoint' | 'end' | 'start';
  /** Whether refused reads carry the reason behind their result. */
  givesReasons: boolean;
  /** Whether responses are compressed for clients that accept gzip. Servers from 25.1 on do. */
  compresses: boolean;
}

const MEBIBYTE = 1024 * 1024;

const V23: ServerVersion = {
  reported: '23.10.6',
  maxAppendSize: MEBIBYTE,
  maxEventSize: Infinity,
  countsTypes: false,
  slowConsumer: 'ended',
  confirmsRefused: false,
  emptyCatchUp: 'no_checkpoint',
  givesReasons: false,
  compresses: false,
};
const V24: ServerVersion = {
  ...V23,
  reported: '24.10.0-prerelease',
  slowConsumer: 'caught_up_again',
  confirmsRefused: true,
  emptyCatchUp: 'end',
};
const V25: ServerVersion = {
  ...V24,
  reported: '25.0.1-prerelease',
  countsTypes: true,
  emptyCatchUp: 'start',
};

/** 26.1 takes 4 MB at its defaults. Where its limits are was not tried; these stand for them. */
const V26: ServerVersion = {
  ...V25,
  reported: '26.1.0-prerelease',
  maxAppendSize: 16 * MEBIBYTE,
  maxEventSize: 8 * MEBIBYTE,
  givesReasons: true,
  compresses: true,
};

const VERSIONS = {
  '23.10.6': V23,
  '24.6.0': { ...V24, reported: '24.6.0' },
  '24.10.0': V24,
  '25.0.1': V25,
  '26.1.0': V26,
} satisfies Record<string, ServerVersion>;

type VersionName = keyof typeof VERSIONS;

const VERSION_NAMES = Object.keys(VERSIONS) as VersionName[];

/**
 * The least kind of the five to its clients: a checkpoint `end` that hides all later ones, and a
 * limit of 1 MiB.
 */
export const DEFAULT_VERSION: VersionName = '24.10.0';

/**
 * Names another version for nodes that are not told which to be: the suites run once more as that
 * one.
 */
const VERSION_VARIABLE = 'TURNLOG_EVENTSTOREDB_VERSION';

/** Throws for a version of which there is no record. */
export function serverVersion(
  name: string = process.env[VERSION_VARIABLE] ?? DEFAULT_VERSION,
): ServerVersion {
  const version = (VERSIONS as Record<string, ServerVersion>)[name];
  if (!version)
    throw new Error(`no record of version ${name}; there are ${VERSION_NAMES.join(', ')}`);
  return version;
}
