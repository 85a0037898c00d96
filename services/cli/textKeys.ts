import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { JudgeContext, JudgedErasure } from '../../shared/erasure/restored/judgeErasure.ts';
import {
  findRestoredKeys,
  reconcileErasures,
  type ErasureProgress,
} from '../../shared/erasure/restored/reconcileErasures.ts';
import { importKeys, type ImportProgress } from '../../shared/eventlog/encryption/importKeys.ts';
import { rotateKeys, type RotationProgress } from '../../shared/eventlog/encryption/rotateKeys.ts';
import { parseConfig } from '../../shared/lib/config/config.ts';
import { isTurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../shared/limits.ts';
import { openCheckpoint } from '../../shared/transparency/proof/openCheckpoint.ts';
import { proofUnder } from '../../shared/transparency/proof/proveEvent.ts';
import { parseVkey } from '../../shared/transparency/tlog/noteKeys.ts';
import type { Position } from '../../shared/ports/eventStore.ts';
import type { KeyStore } from '../../shared/ports/keyStore.ts';
import { locateStorage, type StorageLocation } from '../compose/logLocation.ts';
import { requireDatabaseTables } from '../compose/replica/postgres.ts';
import {
  createNextMasterKeyFile,
  recreateKeyStore,
  openKeyImport,
  openKeyStore,
  openTextKeys,
  requireKeysOfLog,
  requireTextKeys,
} from '../compose/textKeys.ts';
import { readOwnHead, readVkeys } from './audit/checkpoints.ts';
import type { CliContext, TerminalContext, WithOperator, WithTerminal } from './context.ts';
import { EXIT } from './exitCodes.ts';
import { requirePositionInLog, parsePositionOption } from './positions.ts';
import { formatRate } from './progressLine.ts';

/** The location of the service's keys. */
async function locateKeys({ env }: TerminalContext): Promise<StorageLocation> {
  const place = locateStorage(parseConfig(env));
  if (place.kind === 'replica') await requireDatabaseTables(place.databaseUrl);
  return place;
}

/** Erasures that `reconcile` lists; it counts all. */
const MAX_LISTED = 1_000;

const adopt = (opened: AsyncDisposableStack, store: KeyStore): KeyStore =>
  opened.adopt(store, (keys) => keys.close());

/** The exit code is 1 if keys of erased streams exist, 130 if it is interrupted. */
async function status(context: CliContext): Promise<void> {
  const { operator, output, progress, signal, exitWith } = context;
  await using opened = new AsyncDisposableStack();
  const place = await locateKeys(context);
  await requireKeysOfLog(place, operator.store);
  const store = adopt(opened, await openKeyStore(place));
  const { destroyed = 0, ...kept } = Object.fromEntries(await store.count());
  const begun = await store.listErasures(LIMITS.health.streams);
  const open_erasures = begun.map(({ stream }) => stream);
  const master_keys = Object.entries(kept).map(([id, keys]) => ({ master_key_id: id, keys }));
  const erased: string[] = [];
  let count = 0;
  let read = 0;
  const describe = (): string => `${read} events read`;
  const complete = await findRestoredKeys(
    {
      log: operator.store,
      keys: store,
      after: undefined,
      signal,
      onProgress({ events }) {
        read = events;
        progress.update(describe);
      },
    },
    ({ stream }) => {
      count += 1;
      if (erased.length < LIMITS.health.streams) erased.push(stream);
    },
  );
  progress.end(describe());
  output.show(
    {
      master_keys,
      destroyed,
      open_erasures,
      complete,
      erased_with_keys: { count, streams: erased },
    },
    ...master_keys.map(({ master_key_id, keys }) => `${keys} keys under ${master_key_id}`),
    `${destroyed} keys destroyed`,
    ...open_erasures.map((stream) => `an erasure is not at its end: ${stream}`),
    ...erased.map((stream) => `the stream is erased, and its keys exist: ${stream}`),
    ...(count > 0 ? ['List what to do about them: text-keys reconcile'] : []),
  );
  if (count > 0) exitWith(EXIT.failed);
  else if (!complete) exitWith(EXIT.interrupted);
}

/** Describes the effect of a complete rotation on each master key of the file. */
function describeUnusedKeys(
  unused: readonly string[],
  { missing, reason }: RotationProgress,
): string[] {
  if (missing > 0) return [`${missing} keys stay as they are: ${reason}`];
  return unused.map(
    (id) =>
      `No key is wrapped by ${id} any more. Keep it for as long as a backup of the keys needs it.`,
  );
}

const RUN_AGAIN =
  'New keys came in under another master key: restart every process with this master key file, and rotate again.';

/** The exit code is 1 if a key could not be rewrapped, 130 if it is interrupted. */
async function rotate(context: CliContext): Promise<void> {
  const { operator, output, progress, signal, exitWith } = context;
  await using opened = new AsyncDisposableStack();
  const place = await locateKeys(context);
  await requireKeysOfLog(place, operator.store);
  const { store, masterKeys } = await openTextKeys(place);
  adopt(opened, store);
  const began = performance.now();
  const describe = ({ looked_at, wrapped_anew }: RotationProgress): string =>
    `${looked_at} keys looked at, ${wrapped_anew} wrapped anew, ${formatRate(looked_at, began)}`;
  const onProgress = (state: RotationProgress): void => progress.update(() => describe(state));
  const done = await rotateKeys({ store, masterKeys, signal, onProgress });
  progress.end(describe(done));
  const [current, ...others] = masterKeys.ids;
  const used = await store.count();
  const unused = others.filter((id) => !used.has(id));
  const isIncomplete = [...used.keys()].some((id) => id !== current && id !== 'destroyed');
  const { reason: _reason, ...counts } = done;
  output.show(
    { complete: !isIncomplete, ...counts, master_key_id: current, unused_master_keys: unused },
    ...(signal.aborted
      ? ['Interrupted; the next rotation goes on from here.']
      : describeUnusedKeys(unused, done)),
    ...(isIncomplete && !signal.aborted && done.missing === 0 ? [RUN_AGAIN] : []),
  );
  if (signal.aborted) exitWith(EXIT.interrupted);
  else if (isIncomplete) exitWith(EXIT.failed);
}

/** Why the transparency log does not prove an event, by its newest checkpoint. */
async function createProofCheck({ operator }: CliContext): Promise<JudgeContext['findProofFault']> {
  const tiles = await operator.tiles();
  const head = await readOwnHead(operator);
  if (!head) return async () => 'there is no transparency log to prove it';
  const { note: checkpoint, origin } = head;
  const { vkeys } = await readVkeys(operator, origin);
  openCheckpoint(checkpoint, vkeys.map(parseVkey));
  return async (event) => {
    try {
      return (await proofUnder(tiles, event, checkpoint))
        ? undefined
        : 'the transparency log does not contain the event that erases it';
    } catch (error) {
      if (!isTurnlogError(error, 'proof_invalid')) throw error;
      return `the transparency log does not prove the event that erases it: ${error.message}`;
    }
  };
}

interface ReconcileOptions {
  after?: Position;
  apply?: boolean;
}

/** Describes the effect of a reconciliation, or that of applying it. */
function describeOutcome(apply: boolean, destroy: number, keep: number): string[] {
  const keptSentence = `${keep} keys are kept.`;
  if (destroy + keep === 0) return ['No key of an erased stream is left.'];
  if (apply) return [`${destroy} keys were destroyed again, and ${keptSentence}`];
  return [
    `${destroy} keys would be destroyed, and ${keptSentence} Nothing was done.`,
    ...(destroy > 0 ? ['Destroy them: text-keys reconcile --apply'] : []),
  ];
}

/** The exit code is 1 if keys of erased streams are kept, 130 if it is interrupted. */
async function reconcile(
  context: CliContext,
  { after, apply = false }: ReconcileOptions,
): Promise<void> {
  const { operator, output, progress, signal, exitWith } = context;
  requireTextKeys(locateStorage(parseConfig(context.env)));
  await requirePositionInLog(operator.store, after, signal);
  const began = performance.now();
  let done: ErasureProgress = { events: 0, erasures: 0, position: after };
  const listed: JudgedErasure[] = [];
  const count = { destroy: 0, keep: 0 };
  const describe = (): string =>
    `${done.events} events read, ${done.erasures} erasures, ${formatRate(done.events, began)}`;
  const complete = await reconcileErasures(
    {
      log: operator.store,
      context: { ...operator, findProofFault: await createProofCheck(context) },
      apply,
      after,
      signal,
      onProgress(state) {
        done = state;
        progress.update(describe);
      },
    },
    (judged) => {
      count.destroy += judged.destroy.length;
      count.keep += judged.keep.length;
      if (listed.length < MAX_LISTED) listed.push(judged);
    },
  );
  progress.end(describe());
  const again = done.position === undefined ? '' : ` --after ${done.position}`;
  output.show(
    {
      complete,
      applied: apply,
      ...done,
      position: done.position ?? null,
      destroyed_again: apply ? count.destroy : 0,
      to_destroy: apply ? 0 : count.destroy,
      kept: count.keep,
      streams: listed,
    },
    ...listed.flatMap(({ stream, destroy, keep }) => [
      ...destroy.map((id) => `${stream}: the key ${id} ${apply ? 'was' : 'would be'} destroyed`),
      ...keep.map(({ key_id, reason }) => `${stream}: the key ${key_id} is kept: ${reason}`),
    ]),
    ...(complete
      ? describeOutcome(apply, count.destroy, count.keep)
      : [`Interrupted. Go on with: text-keys reconcile${apply ? ' --apply' : ''}${again}`]),
  );
  if (!complete) exitWith(EXIT.interrupted);
  else if (count.keep > 0) exitWith(EXIT.failed);
}

/** The exit code is 130 if it is interrupted. */
async function importFrom(context: TerminalContext, folder: string): Promise<void> {
  const { output, progress, signal, exitWith } = context;
  await using stores = await openKeyImport(await locateKeys(context), resolve(folder));
  const began = performance.now();
  const describe = ({ imported, present, destroyed }: ImportProgress): string =>
    `${imported} keys imported, ${present} present before, ${destroyed} destroyed, ${formatRate(imported + present + destroyed, began)}`;
  const onProgress = (state: ImportProgress): void => progress.update(() => describe(state));
  const done = await importKeys({ ...stores, signal, onProgress });
  progress.end(describe(done));
  output.show(
    { complete: !signal.aborted, ...done },
    signal.aborted
      ? 'Interrupted. The same command continues.'
      : `${done.imported} keys were imported, and ${done.present} were present before. ${done.destroyed} are destroyed, and ${done.open_erasures} erasures are open.`,
  );
  if (signal.aborted) exitWith(EXIT.interrupted);
}

interface NewMasterOptions {
  out: string;
  last?: boolean;
}

/** Writes the file that replaces the master key file. */
async function writeNewMaster(
  terminal: TerminalContext,
  { out, last = false }: NewMasterOptions,
): Promise<void> {
  const file = resolve(out);
  const place = await locateKeys(terminal);
  const { current, ...written } = await createNextMasterKeyFile(place, file, { last });
  const { master_key_id, earlier_master_key_ids: earlier } = written;
  terminal.output.show(
    { file, ...written },
    `${file} has the new master key ${master_key_id}${earlier.length === 0 ? ' and no other' : `, ${last ? 'after' : 'before'} ${earlier.join(', ')}`}.`,
    earlier.length === 0
      ? `There was no earlier one${current === undefined ? '' : `: ${current} does not exist`}.`
      : `Put it in the place of ${current}, for every process, and restart them.`,
    'Back it up apart from the keys and the log.',
  );
}

interface Runners {
  withOperator: WithOperator;
  withTerminal: WithTerminal;
}

/** `text-keys status`, `rotate`, `reconcile`, `new-master`, `import` and `begin-anew`. */
export function addTextKeyCommands(
  program: Command,
  { withOperator, withTerminal }: Runners,
): void {
  const keys = program.command('text-keys').description('work on the keys that protect texts');
  keys
    .command('status')
    .description('count the keys, and list unfinished erasures and erased streams whose keys exist')
    .action(() => withOperator(status));
  keys
    .command('rotate')
    .description(
      'wrap all keys of texts anew under the first key of the master key file, also beside a running server; an interrupted rotation continues next time',
    )
    .action(() => withOperator(rotate));
  keys
    .command('reconcile')
    .description(
      'after restoring the keys from a backup: list those that the log records as erased, or destroy them again',
    )
    .option('--after <position>', 'begin after this position', parsePositionOption)
    .option('--apply', 'destroy the listed keys')
    .action((options: ReconcileOptions) => withOperator((context) => reconcile(context, options)));
  keys
    .command('new-master')
    .description(
      'write a new master key file: a new master key, and those of the current file after it',
    )
    .requiredOption('--out <file>', 'the file, which must not exist yet')
    .option('--last', 'put the new master key after the others: it opens keys and wraps none yet')
    .action((options: NewMasterOptions) =>
      withTerminal((terminal) => writeNewMaster(terminal, options)),
    );
  keys
    .command('import')
    .description(
      'copy the keys of texts from the keys.db of another folder into the configured store; an interrupted import continues next time',
    )
    .argument('<folder>', 'the folder, which no server uses any more')
    .action((folder: string) => withTerminal((terminal) => importFrom(terminal, folder)));
  keys
    .command('begin-anew')
    .description(
      'create a new key store after the old one, or its master key, is lost for good, and with it every text of the log',
    )
    .action(() =>
      withTerminal(async ({ env, output }) => {
        const created = await recreateKeyStore(locateStorage(parseConfig(env)));
        const { key_store, set_aside } = created;
        output.show(
          created,
          `${key_store} is made, for what comes from now on. What the log has of before stays closed: 503 key_missing.`,
          ...(set_aside === null
            ? []
            : [
                `The keys whose master key is lost are in ${set_aside}. If it is found, add it to the master key file, and run: text-keys import ${set_aside}`,
              ]),
        );
      }),
    );
}
