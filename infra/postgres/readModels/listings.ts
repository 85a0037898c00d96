import { LIMITS } from '../../../shared/limits.ts';
import type { Bounds, Page } from '../../../shared/ports/readModels.ts';
import { sessionConditions } from '../../../shared/sessions/sessionConditions.ts';
import type { SessionFilter } from '../../../shared/sessions/sessionFilter.ts';
import { ROW } from './generations.ts';
import { selectAtOnce, selectPage, type Listing, type Statement } from './pages.ts';
import { liveSchema, VERSION } from './version.ts';

const LIVE = liveSchema(VERSION);

/** The agents of an account, oldest first, without erased ones; deleted ones if they are asked for. */
export const listAgents = (accountId: string, page: Page & { deleted?: true }) =>
  selectPage(
    {
      table: 'agents',
      key: 'agent_id',
      where: `agents.account_id = $1 AND NOT agents.${page.deleted ? 'erased' : 'deleted'} AND agents.agent_id > $2`,
      parameters: [accountId, page.after ?? ''],
    },
    page,
  );

const HAS_WORDS = (parameter: string): string =>
  `string_to_array(turn_words.words, ' ') @> ${parameter}::text[]`;

/**
 * The sessions of an account that are asked for, without erased ones. A label is looked up in the
 * order of the list: rows without it are not read.
 */
export function listSessions(accountId: string, page: Page & SessionFilter): Statement {
  const { columns, fixed, tokens, words, descending } = sessionConditions(accountId, page);
  const parameters = [accountId, ...columns.map(([, value]) => value), ...tokens];
  const labelled = tokens.map(
    (_token, index) =>
      `sessions.session_id IN (SELECT session_id FROM ${LIVE}.session_labels WHERE account_id = $1 AND token = $${columns.length + 2 + index})`,
  );
  const listing = {
    table: 'sessions',
    key: 'session_id',
    descending,
    where: [
      'sessions.account_id = $1',
      ...columns.map(([condition], index) => `sessions.${condition} $${index + 2}`),
      ...labelled,
      ...fixed.map((condition) => `sessions.${condition}`),
      "sessions.status <> 'erased'",
    ].join(' AND '),
    parameters,
  } as const;
  return words.length === 0 ? selectPage(listing, page) : foundSessions(listing, words, page);
}

/**
 * Of a listing of sessions those in which one turn has all of the words, with such turns. Whether it
 * goes along the list or through the index of words is for the server to choose, which knows how many
 * turns have a word.
 */
function foundSessions(listing: Listing, words: readonly string[], bounds: Bounds): Statement {
  const turns = `FROM ${LIVE}.turn_words WHERE turn_words.session_id = sessions.session_id AND ${HAS_WORDS(`$${listing.parameters.length + 1}`)}`;
  return selectAtOnce(
    {
      ...listing,
      where: `${listing.where} AND EXISTS (SELECT ${turns})`,
      parameters: [...listing.parameters, words],
      also: `(SELECT json_agg(turn) FROM (SELECT turn ${turns} ORDER BY turn LIMIT ${LIMITS.search.matches}) AS picked) AS matches`,
    },
    bounds,
  );
}

/** How far the index of words is; its parameters are those of the row of the live generation. */
export const INDEX_PROGRESS = `SELECT
  (SELECT max(end_position) FROM ${LIVE}.turns WHERE end_position IS NOT NULL) AS ended,
  (SELECT position FROM ${LIVE}.indexed) AS indexed,
  (SELECT generation FROM ${ROW}) AS generation`;

/** How many turns wait for it. */
export const COUNT_UNINDEXED = `SELECT count(*) AS waiting FROM (
    SELECT FROM ${LIVE}.turns
    WHERE end_position > coalesce((SELECT position FROM ${LIVE}.indexed), '') LIMIT ${LIMITS.search.countedTurns}
  ) AS picked`;

/** The webhooks of an account, oldest first, without erased ones; deleted ones if they are asked for. */
export const listWebhooks = (accountId: string, page: Page & { deleted?: true }) =>
  selectPage(
    {
      table: 'webhooks',
      key: 'webhook_id',
      where: `webhooks.account_id = $1 AND NOT webhooks.${page.deleted ? 'erased' : 'deleted'} AND webhooks.webhook_id > $2`,
      parameters: [accountId, page.after ?? ''],
    },
    page,
  );

/** The sessions that replays made of one, by their ids. */
export const listReplaysOf = (sessionId: string, page: Page) =>
  selectPage(
    {
      table: 'sessions',
      key: 'session_id',
      where: "sessions.replay_of = $1 AND sessions.status <> 'erased' AND sessions.session_id > $2",
      parameters: [sessionId, page.after ?? ''],
    },
    page,
  );

/** The turns of a session, oldest first. */
export const listTurns = (sessionId: string, page: Bounds & { after?: number }) =>
  selectPage(
    {
      table: 'turns',
      key: 'turn',
      where: 'turns.session_id = $1 AND turns.turn > $2',
      parameters: [sessionId, page.after ?? 0],
    },
    page,
  );
