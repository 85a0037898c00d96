import {
  boolean,
  integer,
  json,
  orNull,
  protectedColumn,
  table,
  text,
} from '../readModels/table.ts';
import type { AgentParameters } from './parameters.ts';

export const AGENT_TABLES = {
  agents: table({
    columns: {
      agent_id: text,
      account_id: text,
      name: protectedColumn(text, ''),
      instruction: protectedColumn(text, ''),
      model: text,
      tool: orNull(text),
      component: text,
      /** Whether older turns of its sessions are summed up. */
      compaction: boolean,
      /** How its model is asked; null where the agent does not say. */
      parameters: protectedColumn(orNull(json<AgentParameters>()), null),
      created_at: text,
      updated_at: text,
      /** Left out of lists; an erased one is deleted too. */
      deleted: boolean,
      erased: boolean,
      /** Position of the last event applied; the highest names the state of an account's list. */
      position: text,
      revision: integer,
    },
    key: ['agent_id'],
    indexes: [
      { on: ['account_id', 'agent_id'], where: 'NOT deleted' },
      { on: ['account_id', 'agent_id'], where: 'NOT erased' },
      { on: ['account_id', 'position'] },
    ],
    longRows: true,
  }),
};
