import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Rejection } from '../../../shared/domain/rejection.ts';
import { isErasure } from '../../../shared/eventlog/eventTypes.ts';
import { streamId, streamKind } from '../../../shared/eventlog/streams.ts';
import { CONFIRM_CLOCK } from '../../../shared/erasure/retention/judgeClock.ts';
import { keepTime, readKeptTime } from '../../../shared/erasure/retention/retentionStreams.ts';
import { findStreamOwner } from '../../../shared/erasure/ownedStreams.ts';
import { isTurnlogError, TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { KeptCheckpoint } from '../../../shared/transparency/kept/compareTree.ts';
import { readLogTrees } from '../../../shared/transparency/logTrees.ts';
import { verifyReceipt } from '../../../shared/transparency/receipts/verifyReceipt.ts';
import { parseProof } from '../../../shared/transparency/tlog/proofFile.ts';
import type { Operator } from '../../compose/operator/operator.ts';
import { readTextFile } from '../textFile.ts';
import { streamOfId } from '../audit/receipts.ts';
import type { CliContext } from '../context.ts';
import { eraseOwned, eraseWholeAccount, updateReadModels } from '../erase.ts';
import { confirmToday } from '../accounts/confirmRetention.ts';
import { requireAccount } from '../accounts/limits.ts';

const NOTE = 'erased again after a restore';

/** Something that was erased, and the file that says so. */
interface KnownErasure {
  stream: string;
  source: string;
  /** True with a receipt: the minimum retention was over when it was erased. */
  isProven: boolean;
}

const invalidError = (message: string): TurnlogError =>
  new TurnlogError('configuration_invalid', message);

const ID = /^(acct|session|agent|replay|webhook)_[0-9a-z]{26}$/;

/** The streams of the ids in a file, one a line; empty lines and lines with `#` are ignored. */
export async function readErasedIds(file: string): Promise<KnownErasure[]> {
  const lines = (await readTextFile(file)).split('\n').map((line) => line.trim());
  return lines.flatMap((id, at) => {
    if (id === '' || id.startsWith('#')) return [];
    if (ID.test(id)) return [{ stream: streamOfId(id), source: file, isProven: false }];
    throw invalidError(
      `${file}, line ${at + 1}: there has to be the id of a session, agent, account, replay or webhook.`,
    );
  });
}

/** The text of a file, or of each file in a folder. */
export async function readReceiptFiles(path: string): Promise<{ file: string; text: string }[]> {
  const isFolder = await stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
  const names = isFolder ? (await readdir(path)).filter((name) => !name.startsWith('.')) : [''];
  const files: { file: string; text: string }[] = [];
  for (const name of names.toSorted()) {
    const file = isFolder ? join(path, name) : path;
    files.push({ file, text: await readTextFile(file) });
  }
  return files;
}

/** The keys that signed the trees of a log, as it declares them. */
async function readDeclaredVkeys({ store }: Pick<Operator, 'store'>): Promise<string[]> {
  const trees = await readLogTrees(store);
  return [...(trees?.declared.values() ?? [])].flatMap(({ vkeys }) => vkeys);
}

/**
 * Verifies receipts of erasures. Returns what was erased, and the checkpoints in them. Throws
 * `configuration_invalid` for a file that is no receipt of this log.
 */
export async function openReceipts(
  operator: Pick<Operator, 'store'>,
  files: readonly { file: string; text: string }[],
): Promise<{ erasures: KnownErasure[]; checkpoints: KeptCheckpoint[] }> {
  const vkeys = files.length === 0 ? [] : await readDeclaredVkeys(operator);
  const erasures: KnownErasure[] = [];
  const checkpoints: KeptCheckpoint[] = [];
  for (const { file, text } of files) {
    let fault = 'the log declares no key that could have signed it.';
    const subject = vkeys.flatMap((vkey) => {
      try {
        return [verifyReceipt(text, { vkey, witnesses: [], required: 0 }).subject];
      } catch (error) {
        if (!isTurnlogError(error, 'proof_invalid')) throw error;
        fault = error.message;
        return [];
      }
    })[0];
    if (!subject) throw invalidError(`${file} is no receipt of this log: ${fault}`);
    erasures.push({ stream: subject.stream, source: file, isProven: true });
    const { proof } = JSON.parse(text) as { proof: string };
    checkpoints.push({ name: file, note: parseProof(proof).checkpoint });
  }
  return { erasures, checkpoints };
}

/** The outcome for one erasure. */
export interface ErasureOutcome extends Pick<KnownErasure, 'stream' | 'source'> {
  id: string;
  outcome: 'erased_again' | 'erased_in_backup' | 'not_in_backup' | 'refused';
  reason?: string;
}

async function eraseStreamAgain(
  context: CliContext,
  { stream, isProven: minimumIsOver }: KnownErasure,
): Promise<void> {
  const { operator } = context;
  if (streamKind(stream) === 'account') {
    const id = streamId(stream);
    await requireAccount(await operator.readModels(), id);
    return void (await eraseWholeAccount(context, id, { note: NOTE, minimumIsOver }));
  }
  const readModels = await operator.readModels();
  const account_id = await findStreamOwner({ store: operator.store, readModels }, stream);
  if (account_id === undefined) throw invalidError(`No event says whose ${stream} is.`);
  await eraseOwned(context, { stream, account_id, note: NOTE, minimumIsOver });
}

async function outcomeOf(context: CliContext, known: KnownErasure): Promise<ErasureOutcome> {
  const { stream, source } = known;
  const outcome = { stream, source, id: streamId(stream) };
  try {
    const [last] = await context.operator.store.readStream(stream, {
      direction: 'backwards',
      limit: 1,
    });
    if (!last) return { ...outcome, outcome: 'not_in_backup' };
    if (isErasure(last.type)) return { ...outcome, outcome: 'erased_in_backup' };
    await eraseStreamAgain(context, known);
    return { ...outcome, outcome: 'erased_again' };
  } catch (error) {
    if (!(error instanceof Rejection) && !isTurnlogError(error)) throw error;
    // No other command opens the folders before the restore is finished.
    const reason = error.message.replace(CONFIRM_CLOCK, 'add --today <date>');
    return { ...outcome, outcome: 'refused', reason };
  }
}

/**
 * Records that an operator confirmed the date of today, by which minimum retention is counted from then
 * on. The log was recorded before the backup, made at `at`, and not only before today.
 */
export async function confirmDate(
  { operator }: CliContext,
  today: number,
  at: string,
): Promise<void> {
  const keptTime = await readKeptTime(operator);
  await keepTime(operator, Date.parse(at), keptTime?.confirmations ?? 0);
  await confirmToday(operator, today, 'confirmed for a restore');
}

/** Erases again what a restored log has unerased. Throws the reason of the signal. */
export async function eraseAgain(
  context: CliContext,
  erasures: readonly KnownErasure[],
): Promise<ErasureOutcome[]> {
  const outcomes: ErasureOutcome[] = [];
  for (const erasure of new Map(erasures.map((entry) => [entry.stream, entry])).values()) {
    context.signal.throwIfAborted();
    outcomes.push(await outcomeOf(context, erasure));
  }
  if (outcomes.some(({ outcome }) => outcome === 'erased_again'))
    await updateReadModels(context.operator);
  return outcomes;
}
