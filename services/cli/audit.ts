import type { Command } from 'commander';
import { TurnlogError } from '../../shared/errors.ts';
import { identityOf, logIdAt } from '../../shared/eventlog/logIdentity.ts';
import { isoTime } from '../../shared/ports/clock.ts';
import type { Position } from '../../shared/ports/eventStore.ts';
import { readStreamHeads } from '../../shared/queries/streamHeads.ts';
import { verifyChains, type Misfit } from '../../shared/queries/verifyChains.ts';
import { formatVkey, noteSigner } from '../../shared/tlog/noteKeys.ts';
import type { CliContext, WithOperator } from './context.ts';
import { EXIT } from './exitCodes.ts';
import { openHeadsFile, requireWritable, writeHeadsFile } from './headsFile.ts';
import { compareWithHeads } from './headsInLog.ts';
import { toPosition, requirePosition } from './positions.ts';
import { rate } from './progressLine.ts';

interface VerifyOptions {
  after?: Position;
  heads?: string;
}

/** How far a verification came, and the first event that does not fit. */
interface Verified {
  events: number;
  position: Position | undefined;
  complete: boolean;
  misfit: Misfit | undefined;
}

const goOn = (after: Position | undefined, heads: string | undefined): string =>
  `Go on with: audit verify${after === undefined ? '' : ` --after ${after}`}${heads === undefined ? '' : ` --heads ${heads}`}`;

/** Verifies every hash chain, as far as the signal lets it. */
async function verifyAllChains(
  { operator, progress, signal }: CliContext,
  { after, heads }: VerifyOptions,
): Promise<Verified> {
  const began = performance.now();
  let done = { events: 0, position: after };
  const misfit = await verifyChains({
    store: operator.store,
    after,
    signal,
    onProgress: (state) => {
      done = state;
      progress.update(() => `${state.events} events verified, ${rate(state.events, began)}`);
    },
  });
  const complete = misfit !== undefined || !signal.aborted;
  progress.end(
    complete
      ? `${done.events} events verified`
      : `Interrupted after ${done.events} events. ${goOn(done.position, heads)}`,
  );
  return { ...done, complete, misfit };
}

function verdictOf({ events, position, complete, misfit }: Verified): string[] {
  if (misfit)
    return [
      `The event ${misfit.id} (${misfit.stream} revision ${misfit.revision}, position ${misfit.position}) does not fit: ${misfit.reason}.`,
    ];
  if (!complete) return [];
  if (events === 0 && position === undefined) return ['The log is empty: nothing was verified.'];
  return ['Every event fits its hash chain.'];
}

const UNSEEN = [
  'A chain does not show that a whole stream was deleted, that the newest events of one were cut off, or that one was rewritten with new hashes.',
  'Heads kept outside show it: write them with `audit heads --out <file>`, compare with `audit verify --heads <file>`.',
];

const unseenSince = (at: string): string =>
  `Of what was written after ${at}, and of streams that began since, a deletion, a cut or a rewriting is not seen. Write new heads: \`audit heads --out <file>\`.`;

/**
 * Verifies every hash chain, and looks for the heads of a file. The exit code is 1 when an event or
 * a head does not fit, 130 when it was interrupted. Errors: those of `openHeadsFile`,
 * `position_invalid`.
 */
async function verify(context: CliContext, options: VerifyOptions): Promise<void> {
  const { operator, output, signal } = context;
  await requirePosition(operator.store, options.after, signal);
  const file = options.heads === undefined ? undefined : await openHeadsFile(options.heads);
  const chains = await verifyAllChains(context, options);
  const compared =
    file && !signal.aborted
      ? await compareWithHeads(context, file, goOn(chains.position, options.heads))
      : undefined;
  const { misfit = null, complete, events, position = null } = chains;
  const heads = compared?.data ?? null;
  output.show(
    { complete: complete && heads?.complete !== false, events, position, misfit, heads },
    ...verdictOf(chains),
    ...(compared?.lines ?? []),
    ...(file ? [unseenSince(file.origin.at)] : UNSEEN),
  );
  if (misfit || heads?.first) process.exitCode = EXIT.failed;
  else if (signal.aborted) process.exitCode = EXIT.interrupted;
}

/** Writes the heads of all streams. Errors: the signal's reason. */
async function writeHeads(
  { operator, output, progress, signal }: CliContext,
  file: string,
): Promise<void> {
  await requireWritable(file);
  const at = isoTime(operator.clock.now());
  const began = performance.now();
  const heads = await readStreamHeads({
    store: operator.store,
    signal,
    onProgress: ({ events, streams }) =>
      progress.update(() => `${events} events read, ${streams} streams, ${rate(events, began)}`),
  });
  signal.throwIfAborted();
  const { log_id, streams, sha256 } = await writeHeadsFile(file, heads!, at, signal);
  progress.end(`${streams} heads written`);
  output.show(
    { file, log_id, streams, at, sha256 },
    `${file} has the heads of ${streams} streams. Keep it, or at least its sha256, where nobody writes who can write the log: ${sha256}`,
  );
}

/** Prints what verifies the checkpoints of the log's transparency log. */
async function showVkeys({ operator, output }: CliContext): Promise<void> {
  const { origin: name, keys } = operator.signing();
  const identity = await identityOf(operator.store);
  if (!identity)
    throw new TurnlogError('configuration_invalid', 'The log is empty: it has no id yet.');
  const origin = `${name}/${logIdAt(identity)}`;
  const vkeys = keys.map((key) => formatVkey(noteSigner(origin, key).key));
  output.show({ origin, vkeys }, ...vkeys);
}

/** `audit verify`, `audit heads`, `audit vkey` */
export function addAuditCommands(program: Command, run: WithOperator): void {
  const audit = program.command('audit').description('check the log');
  audit
    .command('verify')
    .description('recompute every hash chain and name the first event that does not fit')
    .option('--after <position>', 'begin after this position', toPosition)
    .option('--heads <file>', 'look for the heads that `audit heads` wrote as well')
    .action((options: VerifyOptions) => run((context) => verify(context, options)));
  audit
    .command('heads')
    .description('write the last hash of every stream to a file, to be kept outside')
    .requiredOption(
      '--out <file>',
      'where to; what is there is replaced once the new file is whole',
    )
    .action(({ out }: { out: string }) => run((context) => writeHeads(context, out)));
  audit
    .command('vkey')
    .description('print the keys that verify the checkpoints of the transparency log')
    .action(() => run(showVkeys));
}
