import type { Tables } from '../../../shared/readModels/table.ts';
import { TABLES } from '../../../shared/readModels/tables.ts';
import { versionOf, type Version } from '../../../shared/readModels/version.ts';
import { ddlOf } from './statements.ts';

/**
 * The version that PostgreSQL keeps these tables under: another one is filled from the log beside
 * it, and nothing is ever migrated.
 */
export const postgresVersion = (tables: Tables, logic?: number): Version =>
  versionOf(tables, ddlOf(tables), logic);

/** This release's. */
export const VERSION = postgresVersion(TABLES);

/**
 * What a generation is to its version: `live` answers queries, `first` is what the projector fills
 * until it has caught up for the first time, `building` what a rebuild fills, `retired` what was
 * live before, until it is dropped. Generations change places by being renamed.
 */
export type Role = 'live' | 'first' | 'building' | 'retired';

/** The schema of a generation. The migrations have a function that gives the same names. */
export const schemaOf = ({ number }: Pick<Version, 'number'>, role: Role): string =>
  role === 'live' ? `turnlog_v${number}` : `turnlog_v${number}_${role}`;

/** The schema of the generation that queries are answered from. */
export const liveSchema = (version: Pick<Version, 'number'>): string => schemaOf(version, 'live');

/**
 * Told the position of every checkpoint of the live generation, and nothing when it was replaced.
 */
export const channelOf = liveSchema;

/** Told that the versions which processes answer from may be others than before. */
export const VERSIONS_CHANNEL = 'turnlog_versions';
