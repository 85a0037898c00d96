import { createTables, type Dialect } from '../../../shared/readModels/statements.ts';
import type { Tables } from '../../../shared/readModels/table.ts';
import { TABLES } from '../../../shared/readModels/tables.ts';
import { versionOf, type Version } from '../../../shared/readModels/version.ts';

/**
 * Text compares byte by byte, so that pages have the same order everywhere, whatever the database's
 * collation. json, unlike jsonb, returns exactly what was stored.
 */
export const DIALECT: Dialect = {
  types: { text: 'text COLLATE "C"', integer: 'bigint', boolean: 'boolean', json: 'json' },
  // Free space in its page keeps a row's next version out of the indexes.
  options: ({ rewritten }) => (rewritten ? 'WITH (fillfactor = 80)' : ''),
  wordIndex:
    "CREATE INDEX IF NOT EXISTS turn_words_words ON turn_words USING gin (string_to_array(words, ' '));",
};

/**
 * The version that PostgreSQL keeps these tables under, in the schema that the search path names.
 * Another version is filled from the log beside it; nothing is migrated.
 */
export const postgresVersion = (tables: Tables, logic?: number): Version =>
  versionOf(tables, createTables(tables, DIALECT), logic);

/** The version of this release. */
export const VERSION = postgresVersion(TABLES);

/**
 * The role of a generation within its version: `live` answers queries; the projector fills `first` until
 * it has caught up for the first time; a rebuild fills `building`; `retired` was live before and is
 * about to be dropped. Renaming a schema changes the role.
 */
export type GenerationRole = 'live' | 'first' | 'building' | 'retired';

/** The schema of a generation. A function of the migrations derives the same names. */
export const schemaOf = ({ number }: Pick<Version, 'number'>, role: GenerationRole): string =>
  role === 'live' ? `turnlog_v${number}` : `turnlog_v${number}_${role}`;

/** The schema of the generation that answers queries. */
export const liveSchema = (version: Pick<Version, 'number'>): string => schemaOf(version, 'live');

/**
 * The notification channel of a version: the position of each checkpoint of the live generation, or
 * an empty text when that generation was replaced.
 */
export const channelOf = liveSchema;

/** Notified when the versions that processes answer from may have changed. */
export const VERSIONS_CHANNEL = 'turnlog_versions';
