import type { Bounds, Page } from '../../../shared/ports/readModels.ts';
import { selectPage } from './pages.ts';

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

/** The sessions of an account, newest first, of one agent if one is named, without erased ones. */
export function listSessions(accountId: string, page: Page & { agent_id?: string }) {
  const conditions: [string, unknown][] = [
    ['account_id =', accountId],
    ['agent_id =', page.agent_id],
    ['session_id <', page.after],
  ];
  const given = conditions.filter(([, value]) => value !== undefined);
  return selectPage(
    {
      table: 'sessions',
      key: 'session_id',
      descending: true,
      where: [
        ...given.map(([condition], index) => `sessions.${condition} $${index + 1}`),
        "sessions.status <> 'erased'",
      ].join(' AND '),
      parameters: given.map(([, value]) => value),
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
