import type { Command } from 'commander';
import { eraseAccount, type ErasedAccount } from '../../shared/erasure/eraseAccount.ts';
import type { ErasedStream } from '../../shared/erasure/eraseStream.ts';
import { eraseWithReplays } from '../../shared/erasure/eraseWithReplays.ts';
import { readRetentionPolicy } from '../../shared/erasure/retention/retentionPolicy.ts';
import { erasureRefusedError } from '../../shared/erasure/errors.ts';
import { isRejection, Rejection } from '../../shared/domain/rejection.ts';
import { findStreamOwner } from '../../shared/erasure/ownedStreams.ts';
import { isTurnlogError, TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import {
  accountStream,
  agentStream,
  isIdOf,
  sessionStream,
} from '../../shared/eventlog/streams.ts';
import { findReceipt } from '../../shared/transparency/receipts/readReceipt.ts';
import type { ErasureReceipt } from '../../shared/transparency/receipts/receipt.ts';
import { LIMITS } from '../../shared/limits.ts';
import type { ReadModels } from '../../shared/ports/readModels.ts';
import type { Operator } from '../compose/operator/operator.ts';
import { requireAccount } from './accounts/limits.ts';
import type { CliContext, WithOperator } from './context.ts';
import { usageError } from './failure.ts';

/** Undefined while the transparency log does not cover the erasure, or is not available. */
const findReceiptOf = async (
  operator: Operator,
  stream: string,
): Promise<ErasureReceipt | undefined> =>
  findReceipt({ ...operator, tiles: await operator.tiles() }, stream).catch(() => undefined);

const describeReceipt = (id: string, receipt: ErasureReceipt | undefined): string =>
  receipt
    ? `Its receipt: leaf ${receipt.leaf.index} of the transparency log. Write it with: audit receipt ${id} --out <file>`
    : `The transparency log does not cover it yet. Write its receipt later with: audit receipt ${id} --out <file>`;

interface Options {
  confirm: string;
  note?: string;
  damaged?: true;
}

function requireConfirmed(id: string, { confirm, note = '' }: Options): void {
  if (confirm !== id)
    throw usageError(`An erasure is for good: repeat the id of what is meant, --confirm ${id}.`);
  if (Array.from(note).length > LIMITS.text.noteCharacters)
    throw usageError(`A note has at most ${LIMITS.text.noteCharacters} characters.`);
}

/**
 * Adds the reason of the account's legal hold to an error that refuses an erasure: operators see it,
 * and clients don't.
 */
async function withHoldReason<Done>(
  { operator }: Pick<CliContext, 'operator'>,
  account_id: string,
  erase: () => Promise<Done>,
): Promise<Done> {
  try {
    return await erase();
  } catch (error) {
    if (!isTurnlogError(error, 'erasure_refused') && !isRejection(error, 'account_held'))
      throw error;
    // A damaged account does not tell, and the refusal itself matters more.
    const policy = await readRetentionPolicy(operator, account_id).catch(() => undefined);
    if (policy?.hold.reason === undefined) throw error;
    const message = `${error.message} The hold's reason: ${policy.hold.reason}`;
    throw isTurnlogError(error)
      ? erasureRefusedError(message)
      : new Rejection('account_held', message);
  }
}

/** Removes erased texts from the read models in this process, so that no server need be running. */
export async function updateReadModels(operator: Operator): Promise<void> {
  await (await operator.openReadModels()).close();
  await operator.purgeErasedTurns();
}

const describeErasure = (erased: ErasedStream): string[] => [
  `${erased.stream} is erased: event ${erased.event.id}, revision ${erased.event.revision}.`,
  ...(erased.unread === undefined
    ? []
    : [`Its stream is damaged: ${erased.unread}. What is missing there was not looked at.`]),
];

const STREAMS = { session: sessionStream, agent: agentStream };

interface Owned {
  stream: string;
  account_id: string;
  note: string | undefined;
  minimumIsOver?: boolean;
}

/** Erases a stream with its replays. The caller updates the read models. */
export async function eraseOwned(
  { operator, logger }: Pick<CliContext, 'operator' | 'logger'>,
  { stream, account_id, note, minimumIsOver }: Owned,
): Promise<ErasedStream> {
  const actor = { account_id, key_id: 'operator', request_id: 'cli' };
  await using opened = new AsyncDisposableStack();
  const upToDate = async (): Promise<ReadModels> =>
    opened.adopt(await operator.openReadModels(), (queries) => queries.close());
  const erasing = {
    ...operator,
    dependentsAt: upToDate,
    logger: logger('warn'),
    minimumIsOver,
  };
  return await withHoldReason({ operator }, account_id, () =>
    eraseWithReplays(erasing, stream, { reason: 'request', note }, actor),
  );
}

async function eraseOne(
  context: CliContext,
  kind: keyof typeof STREAMS,
  id: string,
  options: Options,
): Promise<void> {
  const { operator, output } = context;
  requireConfirmed(id, options);
  const stream = STREAMS[kind](id);
  const { store } = operator;
  const readModels = await operator.readModels();
  const account_id = isIdOf(kind, id)
    ? await findStreamOwner({ store, readModels }, stream)
    : undefined;
  if (account_id === undefined)
    throw new TurnlogError('configuration_invalid', `There is no ${kind} ${id}.`);
  const erased = await eraseOwned(context, { stream, account_id, note: options.note });
  await updateReadModels(operator);
  const { event, erased_at, unread = null } = erased;
  const receipt = await findReceiptOf(operator, stream);
  output.show(
    {
      [`${kind}_id`]: id,
      account_id,
      erased_at,
      event,
      unread,
      erasure_receipt: receipt ?? null,
    },
    ...describeErasure(erased),
    describeReceipt(id, receipt),
  );
}

/** Checks the log first: the read models don't show an account whose first event is unreadable. */
async function requireExistingAccount({ operator }: CliContext, account_id: string): Promise<void> {
  const stream = accountStream(account_id);
  const isThere = await operator.store
    .readStream(stream, { direction: 'backwards', limit: 1 })
    .then(
      ({ length }) => length > 0,
      (error: unknown) => isTurnlogError(error, 'stream_damaged'),
    );
  if (!isThere) await requireAccount(await operator.readModels(), account_id);
}

/** The streams of an erased account that could not be recorded as erased. */
const describeRemains = ({ unrecorded, unowned }: ErasedAccount): string[] => [
  ...unrecorded.map(
    (stream) =>
      `${stream} is damaged, and its log can't say so: the keys that were found in it are destroyed; an agent's or account's texts \`projections rebuild\` takes out of the read models.`,
  ),
  ...unowned.map(
    (stream) => `${stream} was left: the log does not say that it belongs to the account.`,
  ),
];

/** Erases an account with everything in it. The caller updates the read models. */
export async function eraseWholeAccount(
  context: Pick<CliContext, 'operator' | 'progress' | 'signal'>,
  account_id: string,
  {
    note,
    damaged,
    minimumIsOver,
  }: Pick<Options, 'note' | 'damaged'> & Pick<Owned, 'minimumIsOver'>,
): Promise<ErasedAccount> {
  const { operator, progress, signal } = context;
  await using opened = new AsyncDisposableStack();
  const readModelsAt = async (): Promise<ReadModels> =>
    opened.adopt(await operator.openReadModels(), (queries) => queries.close());
  return await withHoldReason(context, account_id, () =>
    eraseAccount(
      { ...operator, readModelsAt, minimumIsOver },
      { account_id, key_id: 'operator', request_id: 'cli' },
      {
        note,
        damaged,
        signal,
        onProgress: (counts) =>
          progress.update(() => `${counts.sessions} sessions and ${counts.agents} agents erased`),
      },
    ),
  );
}

async function eraseAll(context: CliContext, account_id: string, options: Options): Promise<void> {
  requireConfirmed(account_id, options);
  const { operator, output, progress } = context;
  await requireExistingAccount(context, account_id);
  const done = await eraseWholeAccount(context, account_id, options);
  const { erasure, sessions, agents, webhooks, replays, unrecorded, unowned } = done;
  await updateReadModels(operator);
  progress.end(`${sessions} sessions and ${agents} agents erased`);
  const { event = null, erased_at = null } = erasure ?? {};
  const receipt = await findReceiptOf(operator, accountStream(account_id));
  const counts = { sessions, agents, webhooks, replays, unrecorded, unowned };
  output.show(
    { account_id, erased_at, event, ...counts, erasure_receipt: receipt ?? null },
    `${account_id} is erased, with its keys, ${sessions} sessions and ${agents} agents.`,
    ...describeRemains(done),
    describeReceipt(account_id, receipt),
  );
}

const NOTE = ['--note <text>', 'why; never erased, so no personal data'] as const;

/** `accounts erase`, `sessions erase` and `agents erase` */
export function addEraseCommands(program: Command, accounts: Command, run: WithOperator): void {
  accounts
    .command('erase')
    .description(
      'close an account for good, and erase the texts of all its sessions and agents; after an interruption, the same command continues',
    )
    .argument('<account_id>')
    .requiredOption('--confirm <account_id>', 'the same id again')
    .option(...NOTE)
    .option('--damaged', 'also if its own stream is damaged, and may have recorded a legal hold')
    .action((id: string, options: Options) => run((context) => eraseAll(context, id, options)));
  for (const kind of ['session', 'agent'] as const)
    program
      .command(`${kind}s`)
      .description(`erase ${kind}s`)
      .command('erase')
      .description(`erase the texts of ${kind === 'agent' ? 'an agent' : 'a session'} for good`)
      .argument(`<${kind}_id>`)
      .requiredOption(`--confirm <${kind}_id>`, 'the same id again')
      .option(...NOTE)
      .action((id: string, options: Options) =>
        run((context) => eraseOne(context, kind, id, options)),
      );
}
