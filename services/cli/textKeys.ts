import type { Command } from 'commander';
import {
  reconcileErasures,
  type ReconciliationProgress,
} from '../../shared/erasure/reconcileErasures.ts';
import { rotateKeys, type RotationProgress } from '../../shared/eventlog/encryption/rotateKeys.ts';
import { parseConfig } from '../../shared/lib/config/config.ts';
import { newMasterKey } from '../../shared/eventlog/encryption/masterKeys.ts';
import { LIMITS } from '../../shared/limits.ts';
import type { Position } from '../../shared/ports/eventStore.ts';
import type { KeyStore } from '../../shared/ports/keyStore.ts';
import { locateStorage, type StorageLocation } from '../compose/logLocation.ts';
import { requireDatabaseTables } from '../compose/replica/postgres.ts';
import { recreateKeyStore, openKeyStore, openTextKeys } from '../compose/textKeys.ts';
import type { CliContext, TerminalContext, WithOperator, WithTerminal } from './context.ts';
import { EXIT } from './exitCodes.ts';
import { requirePosition, parsePositionOption } from './positions.ts';
import { formatRate } from './progressLine.ts';

/** The location of the service's keys. */
async function locateKeys({ env }: TerminalContext): Promise<StorageLocation> {
  const place = locateStorage(parseConfig(env));
  if (place.kind === 'replica') await requireDatabaseTables(place.databaseUrl);
  return place;
}

const adopt = (opened: AsyncDisposableStack, store: KeyStore): KeyStore =>
  opened.adopt(store, (keys) => keys.close());

async function status(context: CliContext): Promise<void> {
  await using opened = new AsyncDisposableStack();
  const store = adopt(opened, await openKeyStore(await locateKeys(context)));
  const { destroyed = 0, ...kept } = Object.fromEntries(await store.count());
  const begun = await store.listErasures(LIMITS.health.streams);
  const open_erasures = begun.map(({ stream }) => stream);
  const master_keys = Object.entries(kept).map(([id, keys]) => ({ master_key_id: id, keys }));
  context.output.show(
    { master_keys, destroyed, open_erasures },
    ...master_keys.map(({ master_key_id, keys }) => `${keys} keys under ${master_key_id}`),
    `${destroyed} keys destroyed`,
    ...open_erasures.map((stream) => `an erasure is not at its end: ${stream}`),
  );
}

/** What a complete rotation means for each master key of the file. */
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
  const { output, progress, signal, exitWith } = context;
  await using opened = new AsyncDisposableStack();
  const { store, masterKeys } = await openTextKeys(await locateKeys(context));
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

/** The exit code is 130 if it is interrupted. */
async function reconcile(context: CliContext, after: Position | undefined): Promise<void> {
  const { operator, output, progress, signal, exitWith } = context;
  await requirePosition(operator.store, after, signal);
  await using opened = new AsyncDisposableStack();
  const store = adopt(opened, await openKeyStore(await locateKeys(context)));
  const began = performance.now();
  let done: ReconciliationProgress = {
    events: 0,
    erasures: 0,
    destroyed_again: 0,
    position: after,
  };
  const describe = (): string =>
    `${done.events} events read, ${done.erasures} erasures, ${formatRate(done.events, began)}`;
  const complete = await reconcileErasures({
    log: operator.store,
    store,
    after,
    signal,
    onProgress(state) {
      done = state;
      progress.update(describe);
    },
  });
  progress.end(describe());
  output.show(
    { complete, ...done, position: done.position ?? null },
    complete
      ? `${done.destroyed_again} keys were destroyed again; every erasure of the log holds.`
      : `Interrupted. Go on with: text-keys reconcile${done.position === undefined ? '' : ` --after ${done.position}`}`,
  );
  if (!complete) exitWith(EXIT.interrupted);
}

const ROTATE = 'wrap all keys of texts anew under the first key of the master key file';

interface Runners {
  withOperator: WithOperator;
  withTerminal: WithTerminal;
}

/** `text-keys status`, `rotate`, `reconcile`, `new-master` and `begin-anew`; `keys rotate` is an alias. */
export function addTextKeyCommands(
  program: Command,
  apiKeys: Command,
  { withOperator, withTerminal }: Runners,
): void {
  const keys = program.command('text-keys').description('work on the keys that protect texts');
  keys
    .command('status')
    .description('count the keys, and list the unfinished erasures')
    .action(() => withOperator(status));
  keys
    .command('rotate')
    .description(
      `${ROTATE}, also beside a running server; an interrupted rotation continues next time`,
    )
    .action(() => withOperator(rotate));
  apiKeys
    .command('rotate', { hidden: true })
    .description(ROTATE)
    .action(() => withOperator(rotate));
  keys
    .command('reconcile')
    .description(
      'after restoring the keys from a backup: destroy again those that the log records as erased',
    )
    .option('--after <position>', 'begin after this position', parsePositionOption)
    .action(({ after }: { after?: Position }) =>
      withOperator((context) => reconcile(context, after)),
    );
  keys
    .command('new-master')
    .description('print a new master key, as a line for MASTER_KEY_FILE; it is not stored')
    .action(() =>
      withTerminal(async ({ output }) => {
        const line = newMasterKey();
        output.show({ master_key_id: line.slice(0, 16), line }, line);
      }),
    );
  keys
    .command('begin-anew')
    .description(
      'create a new key store after the old one is lost for good, and with it every text of the log',
    )
    .action(() =>
      withTerminal(async ({ env, output }) => {
        const key_store = await recreateKeyStore(locateStorage(parseConfig(env)));
        output.show(
          { key_store },
          `${key_store} is made, for what comes from now on. What the log has of before stays closed: 503 key_missing.`,
        );
      }),
    );
}
