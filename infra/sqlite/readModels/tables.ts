import type { SQLOutputValue } from 'node:sqlite';
import type { Rows, TableName } from '../../../shared/projections/rows.ts';

/** How a column is kept: as it is, as JSON text, or as 0 and 1. */
type Kind = 'plain' | 'json' | 'flag';

interface Table<Row> {
  key: readonly (keyof Row & string)[];
  columns: Readonly<Record<keyof Row & string, Kind>>;
}

export const TABLES: { readonly [Name in TableName]: Table<Rows[Name]> } = {
  accounts: {
    key: ['account_id'],
    columns: { account_id: 'plain', name: 'plain', opened_at: 'plain', revision: 'plain' },
  },
  api_keys: {
    key: ['key_id'],
    columns: {
      key_id: 'plain',
      account_id: 'plain',
      name: 'plain',
      hash: 'plain',
      scopes: 'json',
      issued_at: 'plain',
      expires_at: 'plain',
      revoked_at: 'plain',
      revision: 'plain',
    },
  },
  agents: {
    key: ['agent_id'],
    columns: {
      agent_id: 'plain',
      account_id: 'plain',
      name: 'plain',
      instruction: 'plain',
      model: 'plain',
      tool: 'plain',
      component: 'plain',
      created_at: 'plain',
      updated_at: 'plain',
      deleted: 'flag',
      position: 'plain',
      revision: 'plain',
    },
  },
  sessions: {
    key: ['session_id'],
    columns: {
      session_id: 'plain',
      agent_id: 'plain',
      account_id: 'plain',
      status: 'plain',
      turns: 'plain',
      created_at: 'plain',
      updated_at: 'plain',
      revision: 'plain',
    },
  },
  turns: {
    key: ['session_id', 'turn'],
    columns: {
      session_id: 'plain',
      turn: 'plain',
      status: 'plain',
      input: 'plain',
      output: 'plain',
      model: 'plain',
      tool_used: 'plain',
      tool_calls: 'json',
      tokens: 'json',
      error: 'json',
      started_at: 'plain',
      ended_at: 'plain',
      owner: 'plain',
      deadline: 'plain',
      revision: 'plain',
    },
  },
};

export const tableNames = Object.keys(TABLES) as TableName[];

type Parameter = string | number | null;

function encode(kind: Kind, value: unknown): Parameter {
  if (kind === 'plain' || value === null) return value as Parameter;
  return kind === 'json' ? JSON.stringify(value) : Number(value);
}

const decode = (kind: Kind, value: SQLOutputValue): unknown =>
  kind === 'json' ? JSON.parse(value as string) : value === 1;

/** The SQL that loads and saves rows of one table by key, and what a row is as parameters. */
export function tableSql(table: TableName) {
  const { key, columns } = TABLES[table];
  const kinds = Object.entries(columns);
  const names = kinds.map(([name]) => name);
  const updates = names
    .filter((name) => !(key as readonly string[]).includes(name))
    .map((name) => `${name} = excluded.${name}`);
  return {
    select: `SELECT * FROM ${table} WHERE ${key.map((name) => `${name} = ?`).join(' AND ')}`,
    upsert: `INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')}) ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${updates.join(', ')}`,
    parameters: (row: Rows[TableName]): Parameter[] =>
      kinds.map(([name, kind]) => encode(kind, row[name as keyof typeof row])),
  };
}

/** A row decoder for one table; it works in place, on the object that SQLite made for it. */
export function rowDecoder<Name extends TableName>(
  table: Name,
): (found: Record<string, SQLOutputValue>) => Rows[Name] {
  const kinds = Object.entries(TABLES[table].columns) as [string, Kind][];
  const special = kinds.filter(([, kind]) => kind !== 'plain');
  return (found) => {
    const row: Record<string, unknown> = found;
    for (const [name, kind] of special)
      if (row[name] !== null) row[name] = decode(kind, found[name] as SQLOutputValue);
    return row as unknown as Rows[Name];
  };
}
