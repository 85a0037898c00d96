import { setTimeout as sleep } from 'node:timers/promises';
import { interruptIfOrphaned } from '../shared/commands/run/interruptTurn.ts';
import { issueKey, openAccount } from '../shared/commands/accounts.ts';
import { untilVisible, type CommandContext } from '../shared/commands/context.ts';
import type { RunContext } from '../shared/commands/run/context.ts';
import { SCOPES } from '../shared/domain/account/events.ts';
import { isTurnlogError } from '../shared/errors.ts';
import type { Logger } from '../shared/logger.ts';
import type { ProgressFeed } from '../shared/projections/progress.ts';

const STORE_PAUSE_MS = 1_000;

/** Does work of the start that needs the event store, again and again while that is away. Errors: the work's own, the signal's reason. */
export async function onceStoreAnswers<Result>(work: () => Promise<Result>, logger: Logger, signal: AbortSignal): Promise<Result> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isTurnlogError(error, 'store_unavailable') || !error.retriable) throw error;
      logger.warn({ err: error }, 'the event store is away; the start goes on when it is back');
      await sleep(STORE_PAUSE_MS, undefined, { signal }).catch(() => {
        throw signal.reason;
      });
    }
  }
}

/** Resolves once the read models show everything that there was when it was asked. */
export function untilCaughtUp(progress: ProgressFeed, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const stop = progress.subscribe(({ caughtUp }) => {
      if (caughtUp) resolve();
    });
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    signal.addEventListener('abort', stop, { once: true });
  });
}

/**
 * Closes the turns that a crash of this instance left open; every later query shows them so. A session that can't be read
 * is left alone and logged: it must not keep the service from starting. Errors: `store_unavailable`.
 */
export async function recoverOpenTurns(context: RunContext): Promise<void> {
  const open = await context.readModels.listOpenTurns();
  if (open.length === 0) return;
  for (const turn of open) {
    await interruptIfOrphaned(context, turn).catch((error: unknown) => {
      if (isTurnlogError(error)) throw error;
      context.logger.error({ err: error, session_id: turn.session_id, turn: turn.turn }, 'an open turn could not be closed, because its session can not be read');
    });
  }
  const head = await context.store.head();
  if (head !== undefined) await untilVisible(context, head);
  context.logger.warn({ turns: open.length }, 'turns were open: those that a crash left behind are marked as interrupted');
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
