import type { Rows, TableName } from '../../../shared/projections/rows.ts';

type ColumnType = 'text' | 'bigint' | 'boolean' | 'json';

interface Table<Row> {
  key: readonly (keyof Row & string)[];
  columns: Readonly<Record<keyof Row & string, ColumnType>>;
}

const TABLES: { readonly [Name in TableName]: Table<Rows[Name]> } = {
  accounts: {
    key: ['account_id'],
    columns: { account_id: 'text', name: 'text', opened_at: 'text', revision: 'bigint' },
  },
  api_keys: {
    key: ['key_id'],
    columns: {
      key_id: 'text',
      account_id: 'text',
      name: 'text',
      hash: 'text',
      scopes: 'json',
      issued_at: 'text',
      expires_at: 'text',
      revoked_at: 'text',
      revision: 'bigint',
    },
  },
  agents: {
    key: ['agent_id'],
    columns: {
      agent_id: 'text',
      account_id: 'text',
      name: 'text',
      instruction: 'text',
      model: 'text',
      tool: 'text',
      component: 'text',
      created_at: 'text',
      updated_at: 'text',
      deleted: 'boolean',
      position: 'text',
      revision: 'bigint',
    },
  },
  sessions: {
    key: ['session_id'],
    columns: {
      session_id: 'text',
      agent_id: 'text',
      account_id: 'text',
      status: 'text',
      turns: 'bigint',
      created_at: 'text',
      updated_at: 'text',
      revision: 'bigint',
    },
  },
  turns: {
    key: ['session_id', 'turn'],
    columns: {
      session_id: 'text',
      turn: 'bigint',
      status: 'text',
      input: 'text',
      output: 'text',
      model: 'text',
      tool_used: 'text',
      tool_calls: 'json',
      tokens: 'json',
      error: 'json',
      started_at: 'text',
      ended_at: 'text',
      owner: 'text',
      deadline: 'text',
      revision: 'bigint',
    },
  },
};

export const tableNames = Object.keys(TABLES) as TableName[];

/** The columns of a table, for SELECT. */
export const columnsOf = (table: TableName): string =>
  Object.keys(TABLES[table].columns)
    .map((name) => `${table}.${name}`)
    .join(', ');

/** The names of a table's key columns, in the order of `RowKey`. */
export const keyOf = (table: TableName): readonly string[] => TABLES[table].key;

const typed = (entries: readonly [string, string][]): string =>
  entries.map(([name, type]) => `${name} ${type}`).join(', ');

/**
 * The SQL that loads and saves many rows of one table in one statement. Their one parameter is a JSON array: of objects with
 * the key's columns, and of rows. JSON, because both sides write and parse it natively, whatever the columns' types.
 */
export function tableSql(schema: string, table: TableName): { load: string; save: string } {
  const { key, columns } = TABLES[table];
  const types = Object.entries(columns);
  const names = types.map(([name]) => name);
  const isKey = (name: string): boolean => (key as readonly string[]).includes(name);
  return {
    load: `SELECT ${columnsOf(table)} FROM ${schema}.${table} JOIN json_to_recordset($1::json) AS wanted(${typed(types.filter(([name]) => isKey(name)))}) USING (${key.join(', ')})`,
    save: `INSERT INTO ${schema}.${table} (${names.join(', ')}) SELECT ${names.join(', ')} FROM json_to_recordset($1::json) AS given(${typed(types)})
      ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${names
        .filter((name) => !isKey(name))
        .map((name) => `${name} = excluded.${name}`)
        .join(', ')}`,
  };
}
