import { parseConfig } from '../../../shared/lib/config/config.ts';
import type { Comparison } from '../../../shared/transparency/kept/compareTree.ts';
import type { Checkpoint, Position } from '../../../shared/ports/eventStore.ts';
import { isChangedEvent, verifyCheckpoint } from '../../../shared/eventlog/identity/logIdentity.ts';
import { isTurnlogError, logChangedError } from '../../../shared/lib/errors/turnlogError.ts';
import type { LogReading } from '../../../shared/readModels/integrity/verifyRows.ts';
import type { TreeChecker } from '../../../shared/transparency/proof/treeChecker.ts';
import { createTextChecker } from '../../../shared/eventlog/encryption/textChecker.ts';
import { verifyChains, type ChainFault } from '../../../shared/eventlog/reading/verifyChains.ts';
import {
  compareHeads,
  type HeadComparison,
  type LostHead,
} from '../../../shared/eventlog/reading/compareHeads.ts';
import { locateStorage } from '../../compose/logLocation.ts';
import { requireTextKeys } from '../../compose/textKeys.ts';
import type { CliContext } from '../context.ts';
import { EXIT } from '../exitCodes.ts';
import { requirePositionInLog } from '../positions.ts';
import { formatRate } from '../progressLine.ts';
import { openHeadsFile, type HeadsFile } from './headsFile.ts';
import {
  locateFault,
  openComparedTree,
  type ComparedTree,
  type LocatedFault,
  type TreeOptions,
} from './verifyTree.ts';

function describeLoss({ head, loss, revision }: LostHead): string {
  const stream = `The stream ${head.stream}`;
  const event = `revision ${head.revision} (hash ${head.hash})`;
  if (loss === 'deleted') return `${stream} was deleted: it had come to ${event}.`;
  if (loss === 'rewritten')
    return `${stream} was rewritten: its event at ${event} has another hash now.`;
  return `${stream} was cut: it had come to ${event}, and ${revision! < head.revision ? `ends at revision ${revision} now` : 'that event is gone'}.`;
}

async function compareFirstEvent({ operator }: CliContext, log_id: string): Promise<string[]> {
  const first = (await operator.store.firstEvent())?.id;
  if (first === log_id) return [];
  return [
    `The heads are of a log that begins with the event ${log_id}; this one ${first === undefined ? 'is empty' : `begins with ${first}`}: it is another log, or a copy, or its beginning was deleted.`,
  ];
}

/** The result of a comparison, as data and as text. */
interface Compared {
  data: HeadComparison & { at: string; complete: boolean; of_another_log: boolean };
  lines: string[];
}

/** Searches the log for each head in a file. `continueHint` is shown after an interruption. */
async function compareWithHeads(
  context: CliContext,
  { origin, heads }: HeadsFile,
  continueHint: string,
): Promise<Compared> {
  const { operator, progress, signal } = context;
  const { at } = origin;
  const other = await compareFirstEvent(context, origin.log_id);
  const comparison = await compareHeads({
    store: operator.store,
    heads: heads(),
    signal,
    onProgress: (count) => progress.update(() => `${count} of ${origin.streams} heads compared`),
  });
  const { compared, lost, first } = comparison;
  const complete = !signal.aborted;
  progress.end(
    complete
      ? `${compared} heads compared`
      : `Interrupted after ${compared} heads. ${continueHint}`,
  );
  const data = { ...comparison, at, complete, of_another_log: other.length > 0 };
  if (first) {
    const all = lost.deleted + lost.cut + lost.rewritten;
    const count = `${all} of ${compared} streams do not fit the heads of ${at}: ${lost.deleted} deleted, ${lost.cut} cut, ${lost.rewritten} rewritten.`;
    return { data, lines: [...other, describeLoss(first), count] };
  }
  const whole = `All ${compared} heads of ${at} are in the log. Their sha256: ${origin.sha256}`;
  return { data, lines: complete ? [...other, whole] : other };
}

export interface VerifyOptions extends TreeOptions {
  heads?: string;
  texts?: true;
}

/** The extent of a verification, and the first mismatch. */
interface Verified {
  events: number;
  position: Position | undefined;
  complete: boolean;
  misfit: ChainFault | undefined;
  fault: LocatedFault | undefined;
  /** True if the texts were checked as well. */
  texts: boolean;
}

const continueCommand = (options: VerifyOptions): string =>
  ['after', 'heads', 'checkpoint', 'vkey', 'texts'].reduce((command, name) => {
    const value = options[name as keyof VerifyOptions];
    if (value === undefined) return command;
    return value === true ? `${command} --${name}` : `${command} --${name} ${value}`;
  }, 'Go on with: audit verify');

/** The position at which a verification continues: the last leaf, if it was interrupted among newer events. */
export function continuePosition(
  tree: ({ checker: Pick<TreeChecker, 'size'> } & Pick<ComparedTree, 'last' | 'size'>) | undefined,
  { complete, position }: Pick<Verified, 'complete' | 'position'>,
): Position | undefined {
  if (complete || position === undefined || !tree?.last) return position;
  const { position: end } = tree.last;
  return tree.checker.size() > tree.size && end < position ? end : position;
}

/** Verifies every hash chain and the transparency log until the signal aborts, and shows the progress. */
async function verifyAll(
  context: CliContext,
  options: Pick<VerifyOptions, 'after' | 'texts'>,
  tree: ComparedTree | undefined,
  reading?: Pick<LogReading, 'onVerified' | 'percentAt'>,
): Promise<Verified> {
  const { operator, progress, signal } = context;
  const { after } = options;
  const began = performance.now();
  let verified = { events: 0, position: after };
  const finding = await verifyChains({
    store: operator.store,
    after,
    tree: tree?.checker,
    textFault: options.texts && createTextChecker(operator.store),
    signal,
    onVerified: reading?.onVerified,
    onProgress: (state) => {
      verified = state;
      const percent = reading?.percentAt(state.position);
      progress.update(
        () =>
          `${state.events} events verified, ${formatRate(state.events, began)}${percent === undefined ? '' : `, ${percent.toFixed(1)} % of the log read`}`,
      );
    },
  });
  const complete = finding !== undefined || !signal.aborted;
  const { fault = tree?.fault, found, misfit } = finding ?? {};
  const named = tree && fault && (await locateFault(context, tree, fault, found));
  return { ...verified, complete, misfit, fault: named, texts: options.texts === true };
}

/** The result of comparing the log with its transparency log. */
interface LogVerdict {
  complete: boolean;
  events: number;
  /** The leaves that the log was compared with; null without a transparency log. */
  leaves: number | null;
  /** The first contradiction, in a sentence. */
  misfit: string | null;
}

/**
 * Opens the transparency log for the events that an interrupted comparison has not compared with it, and
 * finds where they begin. Throws `log_changed` if the log or its tree may not be those of before.
 */
async function continueTree(
  context: CliContext,
  { after, tree: before }: Required<Pick<LogReading, 'after' | 'tree'>> & { after: Checkpoint },
): Promise<{ tree: ComparedTree | undefined; from: Position | undefined }> {
  const { store } = context.operator;
  await verifyCheckpoint(store, after);
  const event = await store.eventAt(after.position);
  if (event && isChangedEvent(event, after))
    throw logChangedError(`The event ${event.id} at ${after.position} was changed.`);
  if (!before) {
    const tree = await openComparedTree(context, {});
    if (tree) throw logChangedError('The log was not compared with its transparency log before.');
    return { tree, from: undefined };
  }
  const { last } = before;
  const from = last !== undefined && last > after.position ? after.position : last;
  try {
    const tree = await openComparedTree(context, {}, { after: from, signed: before.checkpoint });
    if (tree) return { tree, from };
  } catch (error) {
    if (!isTurnlogError(error, 'proof_invalid')) throw error;
    throw logChangedError(`The transparency log is not the one of before: ${error.message}`);
  }
  throw logChangedError('The transparency log of before is missing.');
}

/**
 * Verifies every hash chain, and compares the log with its transparency log where there is one, and
 * that with witnesses and kept checkpoints; after an interruption only what follows. Throws
 * `configuration_invalid` where the key that signs it is not known here, and `log_changed`.
 */
export async function verifyOwnLog(context: CliContext, reading: LogReading): Promise<LogVerdict> {
  const { after, tree: before, onTree } = reading;
  const { refusal = null } = await context.operator.compareWithOutside(context.signal);
  const { tree, from } = after
    ? await continueTree(context, { after, tree: before })
    : { tree: await openComparedTree(context, {}), from: undefined };
  if (!before && tree?.signed !== undefined)
    await onTree({ checkpoint: tree.signed, last: tree.last?.position });
  const verified = await verifyAll(
    context,
    from === undefined ? {} : { after: from },
    tree,
    reading,
  );
  const { complete, events, misfit, fault } = verified;
  context.progress.end(`${events} events verified`);
  const [sentence = null] = misfit || fault ? verdictLines(verified) : [refusal ?? tree?.missing];
  return { complete, events, leaves: tree?.size ?? null, misfit: sentence };
}

/** Describes a fault of the log or of the tree; the index counts all events of the log. */
function faultSentence({ event, reason, index, kind }: LocatedFault): string {
  if (event)
    return `The event ${event.id} (${event.stream} revision ${event.revision}, position ${event.position}, index ${index}) does not fit: ${reason}.`;
  return kind === 'tile'
    ? `The transparency log does not fit the log: ${reason}.`
    : `The log does not fit: ${reason}.`;
}

function verdictLines({ events, position, complete, misfit, fault, texts }: Verified): string[] {
  if (fault) return [faultSentence(fault)];
  if (misfit)
    return [
      `The event ${misfit.id} (${misfit.stream} revision ${misfit.revision}, position ${misfit.position}) does not fit: ${misfit.reason}.`,
    ];
  if (!complete) return [];
  if (events === 0 && position === undefined) return ['The log is empty: nothing was verified.'];
  return [
    'Every event fits its hash chain.',
    ...(texts ? ['Every text is what was committed to, or erased.'] : []),
  ];
}

/** The findings of witnesses and kept checkpoints, as data and in lines; the lines omit the refusal. */
export const describeOutsideEvidence = ({ compared, troubles, refusal, outvoted }: Comparison) => ({
  data: { compared, not_compared: troubles, outvoted, refusal: refusal ?? null },
  lines: [
    ...outvoted.map((reason) => `Outvoted by the other witnesses: ${reason}`),
    ...compared.map(
      ({ name, size }) => `${name} knows the transparency log with ${size} leaves, which fits.`,
    ),
    ...troubles.map(({ name, trouble }) => `Not compared: ${name} ${trouble}.`),
  ],
});

/** The result of the comparison with the tree, and its limits. */
function treeLines(
  tree: ComparedTree | undefined,
  outside: Comparison,
  { misfit, fault, complete }: Verified,
): string[] {
  if (!tree || misfit || fault || !complete || outside.refusal !== undefined) return [];
  const { size, given, checker } = tree;
  const beyond = Math.max(checker.size() - size, 0);
  return [
    `The transparency log fits, of ${size} leaves${beyond === 0 ? '' : `; ${beyond} events came later`}.`,
    given
      ? `So does the checkpoint of ${given.size} leaves: up to there nothing was changed, dropped or added since it was signed.`
      : outside.compared.length > 0
        ? 'Of what came after the largest size that others know, they do not reveal a rewriting of both logs.'
        : 'Only a checkpoint kept elsewhere reveals that both logs were rewritten: `audit verify --checkpoint <file>`.',
  ];
}

const LIMITS_OF_CHAINS = [
  'A chain does not show that a whole stream was deleted, that the newest events of one were cut off, or that one was rewritten with new hashes.',
  'Heads kept outside show it: write them with `audit heads --out <file>`, compare with `audit verify --heads <file>`.',
];

const limitsOfHeads = (at: string): string =>
  `Of what was written after ${at}, and of streams that began since, a deletion, a cut or a rewriting is not seen. Write new heads: \`audit heads --out <file>\`.`;

/** The whole result of a verification. */
interface VerifyReport {
  data: object;
  lines: string[];
  /** The first contradiction, in a sentence; undefined if there is none in the part that was read. */
  misfit: string | undefined;
}

/**
 * Verifies every hash chain, and compares with the heads of a file, with witnesses and kept
 * checkpoints, until the signal aborts.
 */
export async function verifyEverything(
  context: CliContext,
  options: VerifyOptions,
): Promise<VerifyReport> {
  const { env, operator, progress, signal } = context;
  if (options.texts) requireTextKeys(locateStorage(parseConfig(env)));
  await requirePositionInLog(operator.store, options.after, signal);
  const file = options.heads === undefined ? undefined : await openHeadsFile(options.heads);
  const comparison = await operator.compareWithOutside(signal);
  const tree = await openComparedTree(context, options);
  const outside = { ...comparison, refusal: comparison.refusal ?? tree?.missing };
  const verified = await verifyAll(context, options, tree);
  const { misfit = null, fault = null, complete, events } = verified;
  const position = continuePosition(tree, verified) ?? null;
  const rest = { ...options, ...(position !== null && { after: position }) };
  progress.end(
    complete
      ? `${events} events verified`
      : `Interrupted after ${events} events. ${continueCommand(rest)}`,
  );
  const compared =
    file && !signal.aborted
      ? await compareWithHeads(context, file, continueCommand(rest))
      : undefined;
  const heads = compared?.data ?? null;
  const described = describeOutsideEvidence(outside);
  const compare = tree && { size: tree.size, checkpoint: tree.given?.size ?? null };
  const data = {
    complete: complete && heads?.complete !== false,
    events,
    position,
    misfit,
    heads,
    tree: compare ? { ...compare, fault } : null,
    outside: described.data,
    texts: verified.texts,
  };
  const verdict = verdictLines(verified);
  const lost = compared?.data.first ? compared.lines[0] : undefined;
  return {
    data,
    lines: [
      ...verdict,
      ...(outside.refusal === undefined ? [] : [outside.refusal]),
      ...described.lines,
      ...treeLines(tree, outside, verified),
      ...(compared?.lines ?? []),
      ...(file ? [limitsOfHeads(file.origin.at)] : tree ? [] : LIMITS_OF_CHAINS),
    ],
    misfit: misfit || fault ? verdict[0] : (outside.refusal ?? lost),
  };
}

/** The exit code is 1 if anything does not fit, 130 if it is interrupted. */
export async function verifyLog(context: CliContext, options: VerifyOptions): Promise<void> {
  const { data, lines, misfit } = await verifyEverything(context, options);
  context.output.show(data, ...lines);
  if (misfit !== undefined) context.exitWith(EXIT.failed);
  else if (context.signal.aborted) context.exitWith(EXIT.interrupted);
}
