import type { Command } from 'commander';
import { replaceTree } from '../../../shared/restoredLogs/declareTree.ts';
import { readLogTrees } from '../../../shared/transparency/logTrees.ts';
import { isoTime } from '../../../shared/ports/clock.ts';
import { readStreamHeads } from '../../../shared/eventlog/reading/streamHeads.ts';
import { parseReason } from '../reason.ts';
import { addBundleCommands } from './bundles.ts';
import { addReceiptCommands } from './receipts.ts';
import { verifyLog, type VerifyOptions } from './verify.ts';
import type { CliContext, WithOperator, WithTerminal } from '../context.ts';
import { requireWritable, writeHeadsFile } from './headsFile.ts';
import { parsePositionOption } from '../positions.ts';
import { formatRate } from '../progressLine.ts';
import { parseVkeyOption, readVkeys } from './checkpoints.ts';

/** Writes the heads of all streams. */
async function writeHeads(
  { operator, output, progress, signal }: CliContext,
  file: string,
): Promise<void> {
  await requireWritable(file, { replace: true });
  const at = isoTime(operator.clock.now());
  const began = performance.now();
  const heads = await readStreamHeads({
    store: operator.store,
    signal,
    onProgress: ({ events, streams }) =>
      progress.update(
        () => `${events} events read, ${streams} streams, ${formatRate(events, began)}`,
      ),
  });
  signal.throwIfAborted();
  const { log_id, streams, sha256 } = await writeHeadsFile(file, heads!, at, signal);
  progress.end(`${streams} heads written`);
  output.show(
    { file, log_id, streams, at, sha256 },
    `${file} has the heads of ${streams} streams. Keep it, or at least its sha256, where nobody writes who can write the log: ${sha256}`,
  );
}

/** Prints the keys that verify the checkpoints of the transparency log. */
async function showVkeys({ operator, output }: CliContext): Promise<void> {
  const { origin, vkeys } = await readVkeys(operator);
  output.show({ origin, vkeys }, ...vkeys);
}

/** Declares that another tree begins, where the current one is lost, or its key. */
async function declareTreeAnew(
  { operator, output }: CliContext,
  { reason }: { reason: string },
): Promise<void> {
  const before = await readLogTrees(operator.store);
  const id = await replaceTree(operator, reason);
  const replaces = [...(before?.declared.keys() ?? [])];
  output.show(
    { tree_id: id, replaces, reason },
    `The transparency log ends with ${id} in its origin from now on.`,
    replaces.length === 0 ? 'None was declared before.' : `It replaces: ${replaces.join(', ')}.`,
    'The service begins it with the first event of the log. To witnesses and verifiers it is another log: give them its origin and its key (audit vkey). Keep what was kept of the old one: only that shows whether the log has changed.',
  );
}

/**
 * `audit verify`, `heads`, `vkey`, `declare-tree`, `export`, `verify-bundle`, `receipt` and
 * `verify-receipt`
 */
export function addAuditCommands(program: Command, run: WithOperator, alone: WithTerminal): void {
  const audit = program.command('audit').description('check the log');
  audit
    .command('verify')
    .description(
      'recompute every hash chain and the transparency log, and report the first mismatch',
    )
    .option('--after <position>', 'begin after this position', parsePositionOption)
    .option('--heads <file>', 'also compare with the heads that `audit heads` wrote')
    .option('--checkpoint <file>', 'compare with a checkpoint that was kept elsewhere, of any age')
    .option(
      '--vkey <vkey>',
      'the key that signed it; default: the one that signs here',
      parseVkeyOption,
    )
    .option('--texts', 'also decrypt and check every text, which needs the keys')
    .action((options: VerifyOptions) => run((context) => verifyLog(context, options)));
  audit
    .command('heads')
    .description('write the last hash of every stream to a file, to be kept elsewhere')
    .requiredOption(
      '--out <file>',
      'the file; an existing one is replaced once the new one is complete',
    )
    .action(({ out }: { out: string }) => run((context) => writeHeads(context, out)));
  audit
    .command('vkey')
    .description('print the keys that verify the checkpoints of the transparency log')
    .action(() => run(showVkeys));
  audit
    .command('declare-tree')
    .description(
      'declare that another transparency log begins, because the files or the key of this one are lost; recorded in the log',
    )
    .requiredOption('--reason <text>', 'why, for people', parseReason)
    .action((options: { reason: string }) => run((context) => declareTreeAnew(context, options)));
  addBundleCommands(audit, run, alone);
  addReceiptCommands(audit, run, alone);
}
