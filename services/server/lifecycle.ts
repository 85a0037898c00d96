import { setTimeout as sleep } from 'node:timers/promises';
import { interruptOrphans } from '../../shared/commands/recovery/interruptTurn.ts';
import { issueKey, openAccount } from '../../shared/commands/accounts.ts';
import { untilVisible, type CommandContext } from '../../shared/commands/context.ts';
import type { RunContext } from '../../shared/commands/run/context.ts';
import { SCOPES } from '../../shared/domain/account/events.ts';
import { isRejection, type RejectionCode } from '../../shared/domain/rejection.ts';
import { isTurnlogError } from '../../shared/errors.ts';
import type { Logger } from '../../shared/logger.ts';
import type { EventStore, Position } from '../../shared/ports/eventStore.ts';
import type { ProgressFeed } from '../../shared/projections/progress.ts';

const STORE_PAUSE_MS = 1_000;

/** Does work of the start that needs a store, again and again while that is away. Errors: the work's own, the signal's reason. */
export async function onceStoreAnswers<Result>(
  work: () => Promise<Result>,
  logger: Logger,
  signal: AbortSignal,
): Promise<Result> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isTurnlogError(error, 'store_unavailable') || !error.retriable) throw error;
      logger.warn({ err: error }, 'a store is away; the start goes on when it is back');
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

/** The same for read models that another process may keep up to date. Errors: the signal's reason. */
export async function untilShown(
  { store, readModels, logger }: Pick<CommandContext, 'store' | 'readModels' | 'logger'>,
  signal: AbortSignal,
): Promise<void> {
  const endNow = (): Promise<Position | undefined> =>
    onceStoreAnswers(() => store.head(), logger, signal);
  let end = await endNow();
  while (end !== undefined && !(await readModels.waitUntilPassed(end, STORE_PAUSE_MS))) {
    signal.throwIfAborted();
    // The end may have been that of a node which lost its place: what is no longer in the log is not waited for.
    const now = await endNow();
    if (now === undefined || now < end) end = now;
  }
  // Where the log is empty there is nothing to pass, but the first copy of the read models may still have to be made.
  await onceStoreAnswers(() => readModels.listParkedStreams(), logger, signal);
}

/** The same store, and the position of the last of the events that are written through it. */
function notingPositions(store: EventStore): {
  store: EventStore;
  written: () => Position | undefined;
} {
  let last: Position | undefined;
  const append: EventStore['append'] = async (...given) => {
    const result = await store.append(...given);
    if (last === undefined || result.position > last) last = result.position;
    return result;
  };
  return { store: { ...store, append }, written: () => last };
}

/**
 * Closes the turns that a crash of this instance left open; every later query shows them so.
 * Errors: `store_unavailable`, the signal's reason.
 */
export async function recoverOpenTurns(context: RunContext, signal: AbortSignal): Promise<void> {
  const open = await context.readModels.listOpenTurns();
  if (open.length === 0) return;
  const { store, written } = notingPositions(context.store);
  await interruptOrphans({ ...context, store }, open, signal);
  signal.throwIfAborted();
  const last = written();
  if (last !== undefined) await untilVisible(context, last);
  context.logger.warn(
    { turns: open.length },
    'turns were open: those that a crash left behind are marked as interrupted',
  );
}

/**
 * The account of the first key. Every replica of a first start names the same one, so that they can't open one each: the
 * first to append opens it, and the others find it open.
 */
const FIRST_ACCOUNT = 'acct_00000000000000000000000000';

/** Undefined where the work was rejected so, because another replica came first. Errors: any other of the work's own. */
const unlessRejected = <Result>(
  code: RejectionCode,
  work: Promise<Result>,
): Promise<Result | undefined> =>
  work.catch((error: unknown) => {
    if (isRejection(error, code)) return undefined;
    throw error;
  });

/**
 * Where no key was ever issued: opens the account `default` and issues it a key with every scope, the operator's own or a
 * new one. Resolves with the key, undefined where there was one already; every later query finds it then.
 * Errors: `store_unavailable`, the signal's reason.
 */
export async function bootstrap(
  context: CommandContext,
  operatorsKey: string | undefined,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (await context.readModels.hasApiKeys()) return undefined;
  const actor = { account_id: FIRST_ACCOUNT, key_id: 'operator', request_id: 'bootstrap' };
  await unlessRejected('account_exists', openAccount(context, actor, 'default'));
  const issued = await unlessRejected(
    'key_exists',
    issueKey(context, actor, {
      name: 'bootstrap',
      scopes: SCOPES,
      expiresAt: null,
      apiKey: operatorsKey,
    }),
  );
  // What another replica has written lies before the end.
  if (issued?.position !== undefined) await untilVisible(context, issued.position);
  else await untilShown(context, signal);
  return issued?.api_key;
}
