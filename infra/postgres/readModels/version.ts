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

type Numbered = Pick<Version, 'number'>;

/** The schema of the generation that queries are answered from. */
export const liveSchema = ({ number }: Numbered): string => `turnlog_v${number}`;

/**
 * The other schemas of a version: `first` is what the projector fills until it has caught up for
 * the first time, `building` what a rebuild fills, `retired` what was live before, until it is
 * dropped. Generations change places by being renamed.
 */
export const schemaOf = (version: Numbered, role: 'first' | 'building' | 'retired'): string =>
  `${liveSchema(version)}_${role}`;

/** All schemas that a version may have. */
export const allSchemasOf = (version: Numbered): string[] => [
  liveSchema(version),
  ...(['first', 'building', 'retired'] as const).map((role) => schemaOf(version, role)),
];

/**
 * Told the position of every checkpoint of the live generation, and nothing when it was replaced.
 */
export const channelOf = liveSchema;
