import type { Command } from 'commander';
import { isoTime } from '../../shared/ports/clock.ts';
import type { Position } from '../../shared/ports/eventStore.ts';
import { readStreamHeads } from '../../shared/queries/streamHeads.ts';
import { verifyChains } from '../../shared/queries/verifyChains.ts';
import type { CliContext, WithOperator } from './context.ts';
import { parsePosition } from './events.ts';
import { openHeadsFile, requireWritable, writeHeadsFile } from './headsFile.ts';
import { compareWithHeads } from './headsInLog.ts';
import { rate } from './progressLine.ts';

interface VerifyOptions {
  after?: Position;
  heads?: string;
}

const goOn = (after: Position | undefined, heads: string | undefined): string =>
  `Go on with: audit verify${after === undefined ? '' : ` --after ${after}`}${heads === undefined ? '' : ` --heads ${heads}`}`;

/** Verifies every hash chain. Resolves with where a later command may go on. */
async function verifyAllChains(
  { operator, print, progress, signal }: CliContext,
  { after, heads }: VerifyOptions,
): Promise<Position | undefined> {
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
  if (misfit) {
    progress.end(`${done.events} events verified`);
    print(
      `The event ${misfit.id} (${misfit.stream} revision ${misfit.revision}, position ${misfit.position}) does not fit: ${misfit.reason}.`,
    );
    process.exitCode = 1;
  } else if (signal.aborted) {
    progress.end(`Interrupted after ${done.events} events. ${goOn(done.position, heads)}`);
    process.exitCode = 130;
  } else {
    progress.end(`${done.events} events verified`);
    print('Every event fits its hash chain.');
  }
  return done.position;
}

const UNSEEN = [
  'A chain does not show that a whole stream was deleted, that the newest events of one were cut off, or that one was rewritten with new hashes.',
  'Heads kept outside show it: write them with `audit heads --out <file>`, compare with `audit verify --heads <file>`.',
];

/**
 * Verifies every hash chain, and looks for the heads of a file. The exit code is 1 when an event or
 * a head does not fit, 130 when it was interrupted. Errors: those of `openHeadsFile`.
 */
async function verify(context: CliContext, options: VerifyOptions): Promise<void> {
  const file = options.heads === undefined ? undefined : await openHeadsFile(options.heads);
  const position = await verifyAllChains(context, options);
  if (file && !context.signal.aborted)
    await compareWithHeads(context, file, goOn(position, options.heads));
  const unseen = file
    ? [
        `Of what was written after ${file.origin.at}, and of streams that began since, a deletion, a cut or a rewriting is not seen. Write new heads: \`audit heads --out <file>\`.`,
      ]
    : UNSEEN;
  unseen.forEach(context.print);
}

/** Writes the heads of all streams. The exit code is 130 when it was interrupted. */
async function writeHeads(
  { operator, print, progress, signal }: CliContext,
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
  const { streams, sha256 } = await writeHeadsFile(file, heads!, at, signal);
  progress.end(`${streams} heads written`);
  print(
    `${file} has the heads of ${streams} streams. Keep it, or at least its sha256, where nobody writes who can write the log: ${sha256}`,
  );
}

/** `audit verify`, `audit heads` */
export function addAuditCommands(program: Command, run: WithOperator): void {
  const audit = program.command('audit').description('check the log');
  audit
    .command('verify')
    .description('recompute every hash chain and name the first event that does not fit')
    .option('--after <position>', 'begin after this position', parsePosition)
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
}
