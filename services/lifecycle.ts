import { interruptIfOrphaned } from '../shared/commands/run/interruptTurn.ts';
import { issueKey, openAccount } from '../shared/commands/accounts.ts';
import { untilVisible, type CommandContext } from '../shared/commands/context.ts';
import type { RunContext } from '../shared/commands/run/context.ts';
import { SCOPES } from '../shared/domain/account/events.ts';
import type { ProgressFeed } from '../shared/projections/progress.ts';

/** Resolves once the read models show everything that there was when it was asked. */
export function untilCaughtUp(progress: ProgressFeed, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = progress.subscribe(({ caughtUp }) => {
      if (caughtUp) resolve();
    });
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    signal.addEventListener('abort', stop, { once: true });
  });
}

/** Closes the turns that a crash of this instance left open. */
export async function recoverOpenTurns(context: RunContext): Promise<void> {
  const open = await context.readModels.listOpenTurns();
  for (const turn of open) await interruptIfOrphaned(context, turn);
  if (open.length > 0) context.logger.warn({ turns: open.length }, 'turns were open: those that a crash left behind are marked as interrupted');
}

/**
 * Where no key was ever issued: opens the account `default` and issues it a key with every scope, the operator's own or a
 * new one. Resolves with the key, undefined where there was one already.
 */
export async function bootstrap(context: CommandContext, operatorsKey: string | undefined): Promise<string | undefined> {
  if (await context.readModels.hasApiKeys()) return undefined;
  const actor = { account_id: context.ids.typeId('acct'), key_id: 'operator', request_id: 'bootstrap' };
  await openAccount(context, actor, 'default');
  const { api_key, position } = await issueKey(context, actor, { name: 'bootstrap', scopes: SCOPES, expiresAt: null, apiKey: operatorsKey });
  if (position !== undefined) await untilVisible(context, position);
  return api_key;
}
