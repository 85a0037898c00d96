import { TABLES } from '../../../../shared/readModels/tables.ts';
import type { Tables } from '../../../../shared/readModels/table.ts';

const { component: _added, ...columns } = TABLES.agents.columns;

/**
 * The tables as a release would have described them that did not have the column agents.component
 * yet.
 */
export const OLDER_TABLES: Tables = { ...TABLES, agents: { ...TABLES.agents, columns } };
