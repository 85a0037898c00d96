import { execute } from '../../servers/postgres/postgresDatabase.ts';
import { formsOf } from './holding.ts';

const TABLES = `SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) AS name FROM pg_tables
  WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`;

/** The tables of a database with a row that holds a text, as it is, in hex or in base64. */
export async function tablesHolding(databaseUrl: string, text: string): Promise<string[]> {
  const forms = new Set(formsOf(text).map((form) => form.toString('latin1')));
  const looked = [...forms].filter((form) => /^[\w+/=.-]+$/.test(form));
  const holding: string[] = [];
  for (const { name } of await execute(databaseUrl, TABLES)) {
    const any = looked.map((form) => `strpos(r::text, '${form}') > 0`).join(' OR ');
    const [found] = await execute(
      databaseUrl,
      `SELECT count(*)::int AS n FROM ${String(name)} r WHERE ${any}`,
    );
    if ((found!['n'] as number) > 0) holding.push(String(name));
  }
  return holding;
}
