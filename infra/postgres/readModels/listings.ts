import type { Bounds, Page } from '../../../shared/ports/readModels.ts';
import { sessionConditions } from '../../../shared/readModels/sessionConditions.ts';
import type { SessionFilter } from '../../../shared/readModels/sessionFilter.ts';
import { selectPage } from './pages.ts';
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

/**
 * The sessions of an account that are asked for, without erased ones. A label is looked up in the
 * order of the list: rows without it are not read.
 */
export function listSessions(accountId: string, page: Page & SessionFilter) {
  const { columns, fixed, tokens, descending } = sessionConditions(accountId, page);
  const parameters = [accountId, ...columns.map(([, value]) => value), ...tokens];
  const labelled = tokens.map(
    (_token, index) =>
      `sessions.session_id IN (SELECT session_id FROM ${LIVE}.session_labels WHERE account_id = $1 AND token = $${columns.length + 2 + index})`,
  );
  return selectPage(
    {
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
    },
    page,
  );
}

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
