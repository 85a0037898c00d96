import type { Client } from 'pg';
import { LIMITS } from '../../../shared/limits.ts';
import type { SqlDatabase } from '../../../shared/readModels/sqlDatabase.ts';
import {
  earliestChange,
  type EndedTurn,
  type ListedSession,
  type NextTurn,
  type TurnIndex,
} from '../../../shared/search/turnIndex.ts';
import { sessionIndexes, sessionListing } from '../../../shared/sessions/sqlQueries.ts';
import {
  countParameters,
  pageParameters,
  postgresSql,
  selectPageAtOnce,
  toPage,
  type ReadRows,
} from './statements.ts';

const { turnsAtOnce, charactersAtOnce, matches, accountsAtOnce, turnsOfAccount, changedSessions } =
  LIMITS.search;

const unindexedIn = (
  schema: string,
): string => `SELECT session_id, account_id, turn, input, output, end_position, revision,
    EXISTS (SELECT FROM ${schema}.turn_words
      WHERE turn_words.session_id = bounded.session_id AND turn_words.turn = bounded.turn) AS is_indexed FROM (
    SELECT *, row_number() OVER next AS place,
      sum(octet_length(input) + coalesce(octet_length(output), 0)) OVER next AS used
    FROM (
      SELECT session_id, account_id, turn, input, output, end_position, turns.revision
      FROM ${schema}.turns JOIN ${schema}.sessions USING (session_id)
      WHERE end_position > coalesce((SELECT position FROM ${schema}.indexed), '')
      ORDER BY end_position LIMIT ${turnsAtOnce}
    ) AS picked WINDOW next AS (ORDER BY end_position)
  ) AS bounded WHERE place = 1 OR used <= ${charactersAtOnce} ORDER BY place`;

const fromIn = (schema: string): string => `SELECT ended_at FROM ${schema}.turns
  WHERE end_position > coalesce((SELECT position FROM ${schema}.indexed), '') ORDER BY end_position LIMIT 1`;

/** Skips from account to account in the index, whatever number of sessions they have. */
const accountsIn = (schema: string): string => {
  const next = (after: string): string =>
    `SELECT min(account_id) FROM ${schema}.sessions WHERE account_id > ${after} AND status <> 'erased'`;
  return `WITH RECURSIVE accounts(account_id) AS (
      (${next('$1')}) UNION ALL SELECT (${next('accounts.account_id')}) FROM accounts WHERE account_id IS NOT NULL
    ) SELECT account_id FROM accounts WHERE account_id IS NOT NULL LIMIT ${accountsAtOnce}`;
};

/** The next turns of sessions that have changed since $2. Turns of a session are indexed in order. */
const ofAccountsIn = (schema: string): string => `SELECT found.* FROM (
    SELECT turns.*, octet_length(input) + coalesce(octet_length(output), 0) AS characters,
      sum(octet_length(input) + coalesce(octet_length(output), 0))
        OVER (ORDER BY account_id, session_id, turn) AS used
    FROM unnest($1::text[]) AS given(account) CROSS JOIN LATERAL (
      SELECT session_id, account_id, turn, input, output, end_position, turns.revision
      FROM (SELECT session_id, account_id FROM ${schema}.sessions
        WHERE account_id = account AND updated_at >= $2 AND status <> 'erased'
        ORDER BY updated_at DESC LIMIT ${changedSessions}) AS recent JOIN ${schema}.turns USING (session_id)
      WHERE turn > coalesce((SELECT max(turn) FROM ${schema}.turn_words WHERE turn_words.session_id = recent.session_id), 0)
        AND end_position > coalesce((SELECT position FROM ${schema}.indexed), '')
      ORDER BY session_id, turn LIMIT ${turnsOfAccount}) AS turns
  ) AS found WHERE used - characters <= ${charactersAtOnce} ORDER BY account_id, session_id, turn`;

const indexIn = (
  schema: string,
): string => `INSERT INTO ${schema}.turn_words (session_id, turn, words, revision)
  SELECT session_id, turn, words, revision
  FROM json_to_recordset($1::json) AS given(session_id text, turn bigint, words text, revision bigint)
  WHERE EXISTS (SELECT FROM ${schema}.turns WHERE turns.session_id = given.session_id AND turns.turn = given.turn)
  ON CONFLICT DO NOTHING`;

const goOnIn = (
  schema: string,
): string => `INSERT INTO ${schema}.indexed AS before (only_row, position) VALUES (1, $1)
  ON CONFLICT (only_row) DO UPDATE SET position = excluded.position WHERE excluded.position > before.position`;

/** Fills `turn_words` of a generation, inside a transaction. Throws pg's errors. */
export const createWordIndex = (client: Client, schema: string): TurnIndex => ({
  unindexed: async () => (await client.query<NextTurn>(unindexedIn(schema))).rows,
  async unindexedOfAccounts(after) {
    const [first] = (await client.query<{ ended_at: string }>(fromIn(schema))).rows;
    if (!first) return { turns: [], last: undefined };
    const { rows: accounts } = await client.query<{ account_id: string }>(accountsIn(schema), [
      after,
    ]);
    const ids = accounts.map(({ account_id }) => account_id);
    const { rows: turns } = await client.query<EndedTurn & { used: string }>(ofAccountsIn(schema), [
      ids,
      earliestChange(first.ended_at),
    ]);
    const end = turns.at(-1);
    if (end && Number(end.used) > charactersAtOnce) return { turns, last: end.account_id };
    return { turns, last: ids.length < accountsAtOnce ? undefined : ids.at(-1) };
  },
  async index(turns, outOfOrder = false) {
    const rows = turns.map(({ session_id, turn, tokens, revision }) => ({
      session_id,
      turn,
      words: tokens.join(' '),
      revision,
    }));
    if (rows.length > 0) await client.query(indexIn(schema), [JSON.stringify(rows)]);
    const last = turns.at(-1)?.end_position;
    if (last && !outOfOrder) await client.query(goOnIn(schema), [last]);
  },
});

const turnsWith = (placeholder: string): string =>
  `FROM {turn_words} WHERE turn_words.session_id = sessions.session_id AND string_to_array(turn_words.words, ' ') @> ${placeholder}::text[]`;

/**
 * Finds the sessions of which one turn has all of the words, with such turns. The server chooses whether
 * to follow the list or the word index; it knows how many turns have a word.
 */
export const createSessionSearch =
  (rows: ReadRows): SqlDatabase['searchSessions'] =>
  async (accountId, { words, ...search }, signal) => {
    signal?.throwIfAborted();
    const index = sessionIndexes(accountId, search).find(({ isOrdered }) => isOrdered)!;
    const { listing, parameters } = sessionListing(accountId, search, index);
    const matching = turnsWith(`$${countParameters(listing.where) + 1}`);
    const sql = selectPageAtOnce(
      { ...listing, where: `${listing.where} AND EXISTS (SELECT ${turnsWith('?')})` },
      search.after !== undefined,
      [
        postgresSql(
          `(SELECT json_agg(turn) FROM (SELECT turn ${matching} ORDER BY turn LIMIT ${matches}) AS picked) AS matches`,
        ),
      ],
    );
    const sessions = await rows<ListedSession & { read: number }>(
      sql,
      pageParameters<unknown>([...parameters, words], search),
    );
    return toPage(sessions);
  };
