/**
 * Compares the transparency log with what others know of it: witnesses, and checkpoints that are kept
 * elsewhere. Only they reveal that the event log was rolled back or rewritten together with its tree.
 */
import type { IdentifiableLog } from '../../eventlog/identity/logIdentity.ts';
import { isTurnlogError } from '../../lib/errors/turnlogError.ts';
import { missingTreeSentence, readLogTrees, type LogTrees } from '../logTrees.ts';
import type { StoredTrees } from '../ownTree.ts';
import type { TileReader } from '../tileStore.ts';
import { formatCheckpoint, parseCheckpoint, type CheckpointText } from '../tlog/checkpoint.ts';
import { EMPTY_ROOT } from '../tlog/merkle.ts';
import { openNote, parseNote, signatureLine, signNote } from '../tlog/note.ts';
import { noteSigner, parseVkey, type NoteKey } from '../tlog/noteKeys.ts';
import { rootAt } from '../tlog/proofs.ts';
import { withEarlierTiles } from '../tlog/readTiles.ts';
import type { Witness } from '../witness.ts';
import { requestCosignature, type SignedCheckpoint } from './requestCosignature.ts';

/** A checkpoint that is kept elsewhere, and where. */
export interface KeptCheckpoint {
  name: string;
  note: string;
}

/** A place where checkpoints are kept. */
export interface KeptCheckpoints {
  name: string;
  /** Never rejects, and settles within LIMITS.keptCheckpoints.answerMs. */
  read(signal: AbortSignal): Promise<KeptCheckpoint[] | { trouble: string }>;
}

/** Witnesses and checkpoints outside the log. */
export interface OutsideEvidence {
  witnesses: readonly Witness[];
  /** The cosignatures that a checkpoint needs. */
  wanted: number;
  kept: readonly KeptCheckpoints[];
}

export interface Comparison {
  /** The witnesses and checkpoints that the tree fits, with the size that each knows. */
  compared: { name: string; size: number }[];
  /** Those that could not be read; `trouble` is the rest of a sentence that begins with the name. */
  troubles: { name: string; trouble: string }[];
  /** Why the tree may not be continued, in a sentence with what to do; undefined if it may. */
  refusal: string | undefined;
  /** Witnesses that contradict the tree although enough others confirm it, in sentences. */
  outvoted: string[];
  /** True for a log with events that has no tree and declares none. */
  isNew: boolean;
}

interface OwnTree {
  trees: LogTrees;
  stored: StoredTrees;
  origin: string;
  reader: TileReader;
  /** The newest checkpoint. */
  note: string | undefined;
  size: number;
}

/** The result of one comparison; `cosigned` if a witness has signed the newest checkpoint. */
type Finding =
  | { size: number; cosigned?: true }
  | { trouble: string }
  | { refusal: string }
  | 'not_of_this_tree';

/** How a refusal ends that names a log which is older than, or another than, others know it. */
export const CHANGED_LOG_ADVICE =
  'Put the right log back, together with its transparency log. If it was restored on purpose, declare it: npm run cli -- log accept-restored --reason <text>.';

const rolledBack = (source: string, known: number, { origin, size }: OwnTree): string =>
  `The log was rolled back: ${source} knows a checkpoint of ${known} entries of ${origin}, and the transparency log has ${size}. ${CHANGED_LOG_ADVICE}`;

const rewritten = (source: string, known: number, { origin }: Pick<OwnTree, 'origin'>): string =>
  `The log was rewritten: ${source} knows a checkpoint of ${known} entries of ${origin} with another root. ${CHANGED_LOG_ADVICE}`;

/** The keys that may have signed a checkpoint of this origin. */
const keysOf = ({ trees, stored }: OwnTree, origin: string): NoteKey[] => {
  const own = stored.signingKeys().map((key) => noteSigner(origin, key).key);
  const declared = (trees.declared.get(origin)?.vkeys ?? []).map(parseVkey);
  return [...own, ...declared.filter(({ id }) => own.every((key) => key.id !== id))];
};

/** The content of a note, or why it has none. */
function parseKept(note: string): CheckpointText | { trouble: string } {
  try {
    return parseCheckpoint(parseNote(note).text);
  } catch (error) {
    if (!isTurnlogError(error, 'proof_invalid')) throw error;
    return { trouble: `holds no checkpoint: ${error.message}` };
  }
}

async function compareKept(own: OwnTree, { name, note }: KeptCheckpoint): Promise<Finding> {
  const kept = parseKept(note);
  if ('trouble' in kept) return kept;
  const { origin, size, root } = kept;
  const id = origin.slice(origin.lastIndexOf('/') + 1);
  if (own.trees.earlierIds.includes(id)) return compareEarlier(own, { name, note }, kept);
  if (id !== own.trees.treeId)
    return {
      refusal: `${name} has a checkpoint of another log, ${origin}: the transparency log of this one is ${own.origin}. Put the right log back, or take the checkpoint away.`,
    };
  // After the log was renamed, its tree is made again from the first event.
  if (origin !== own.origin && own.size === 0) return 'not_of_this_tree';
  try {
    openNote(note, keysOf(own, origin));
    if (size > own.size) return { refusal: rolledBack(name, size, own) };
    const isSame =
      Buffer.compare(await rootAt(withEarlierTiles(own.reader, own.size), size), root) === 0;
    return isSame ? { size } : { refusal: rewritten(name, size, own) };
  } catch (error) {
    return unreadableTree(own, `the checkpoint of ${size} entries in ${name}`, error);
  }
}

/**
 * Compares with a checkpoint of an earlier tree that had the same leaves. An account that can write to the
 * event log can declare another tree in it, so that declaration alone is no reason to pass it over.
 */
async function compareEarlier(
  own: OwnTree,
  { name, note }: KeptCheckpoint,
  { origin, size, root }: CheckpointText,
): Promise<Finding> {
  const id = origin.slice(origin.lastIndexOf('/') + 1);
  if (!own.trees.sameLeafIds.includes(id) || size > own.size) return 'not_of_this_tree';
  try {
    openNote(note, keysOf(own, origin));
    const isSame =
      Buffer.compare(await rootAt(withEarlierTiles(own.reader, own.size), size), root) === 0;
    return isSame ? { size } : { refusal: rewritten(name, size, { origin }) };
  } catch (error) {
    if (!isTurnlogError(error, 'proof_invalid')) throw error;
    return {
      trouble: `holds a checkpoint of an earlier tree that can’t be compared: ${error.message}`,
    };
  }
}

/** A finding for a tree whose files are damaged. Rethrows other errors. */
function unreadableTree({ origin }: OwnTree, source: string, error: unknown): Finding {
  if (!isTurnlogError(error, 'proof_invalid')) throw error;
  return {
    refusal: `The transparency log ${origin} can't be compared with ${source}: ${error.message}`,
  };
}

/** Witnesses may refuse a note with the cosignatures of others as too large. */
function withoutCosignatures(shown: string, origin: string): SignedCheckpoint {
  const { text, signatures } = parseNote(shown);
  const own = signatures.filter(({ name }) => name === origin).map(signatureLine);
  return { text, note: `${text}\n${own.join('')}`, size: parseCheckpoint(text).size };
}

/** The newest checkpoint, or a signed one of the empty tree, which commits to nothing. */
function checkpointToShow({ stored, origin, note }: OwnTree): string | undefined {
  if (note !== undefined) return note;
  const signers = stored.signingKeys().map((key) => noteSigner(origin, key));
  if (signers.length === 0) return undefined;
  return signNote(formatCheckpoint({ origin, size: 0, root: EMPTY_ROOT }), signers);
}

async function compareWithWitness(
  own: OwnTree,
  witness: Witness,
  signal: AbortSignal,
): Promise<Finding> {
  const shown = checkpointToShow(own);
  if (shown === undefined) return { trouble: 'can’t be asked: the signing key file is missing' };
  const source = `the witness ${witness.key.name}`;
  let target: SignedCheckpoint;
  try {
    target = withoutCosignatures(shown, own.origin);
  } catch (error) {
    return unreadableTree(own, source, error);
  }
  const from = target.size;
  const answer = await requestCosignature({ witness, tiles: own.reader, signal }, target, from);
  if ('line' in answer) return { size: target.size, cosigned: true };
  const { trouble, ahead, contradicts, unavailable } = answer;
  if (unavailable) throw unavailable;
  if (ahead !== undefined) {
    // Another process may have grown the tree meanwhile. What a witness is shown is stored before.
    const { size } = await own.reader.state();
    // It cosigned a checkpoint that was not stored here before a crash; the tree has its leaves.
    return ahead > size
      ? { refusal: rolledBack(source, ahead, { ...own, size }) }
      : { size: ahead };
  }
  if (!contradicts) return { trouble };
  return { refusal: `The log does not fit: ${source} ${trouble}. ${CHANGED_LOG_ADVICE}` };
}

/** Reads all kept checkpoints at once. */
async function readKept(
  places: OutsideEvidence['kept'],
  signal: AbortSignal,
): Promise<{ kept: KeptCheckpoint[]; troubles: Comparison['troubles'] }> {
  const answers = await Promise.all(
    places.map(async ({ name, read }) => ({ name, found: await read(signal) })),
  );
  return {
    kept: answers.flatMap(({ found }) => ('trouble' in found ? [] : found)),
    troubles: answers.flatMap(({ name, found }) =>
      'trouble' in found ? [{ name, trouble: found.trouble }] : [],
    ),
  };
}

/** An empty log fits no checkpoint: each was signed over a log with events. */
function refusalOfEmptyLog(kept: readonly KeptCheckpoint[]): string | undefined {
  for (const { name, note } of kept) {
    const checkpoint = parseKept(note);
    if ('origin' in checkpoint)
      return `The event log is empty, and ${name} has a checkpoint of ${checkpoint.size} entries of ${checkpoint.origin}. Put the right log back, or take the checkpoint away.`;
  }
  return undefined;
}

/**
 * True if enough witnesses confirm the tree to outvote those that contradict it. All but
 * `witnesses.length - wanted` of them have cosigned the newest checkpoint with `wanted` cosignatures, so
 * a larger number includes one that knows it. The cosignature of an empty tree confirms nothing.
 */
function isConfirmed(
  own: OwnTree,
  { witnesses, wanted }: OutsideEvidence,
  found: Finding[],
): boolean {
  const confirming = found.filter((one) => typeof one === 'object' && 'cosigned' in one).length;
  return own.note !== undefined && confirming >= wanted && confirming > witnesses.length - wanted;
}

/**
 * Compares the tree of a log with what others know of it, and with what the log declares. Asks all of
 * them at once, and waits for each at most as long as it allows. Signs no tree with leaves. Throws
 * `store_unavailable`.
 */
export async function compareTree(
  log: Pick<IdentifiableLog, 'firstEvent' | 'readStream'>,
  stored: StoredTrees,
  outside: OutsideEvidence,
  signal: AbortSignal,
): Promise<Comparison> {
  const { witnesses, kept: places } = outside;
  const [trees, { kept, troubles }] = await Promise.all([
    readLogTrees(log),
    readKept(places, signal),
  ]);
  const result: Comparison = {
    compared: [],
    troubles,
    refusal: undefined,
    outvoted: [],
    isNew: false,
  };
  if (!trees) return { ...result, refusal: refusalOfEmptyLog(kept) };
  if (trees.damage !== undefined) return { ...result, refusal: trees.damage };
  const origin = `${stored.name}/${trees.treeId}`;
  const reader = stored.treeOf(origin);
  const note = await reader.readCheckpoint();
  const declared = trees.declared.has(origin);
  if (note === undefined && declared) return { ...result, refusal: missingTreeSentence(origin) };
  let size: number;
  try {
    ({ size } = await reader.state());
  } catch (error) {
    if (!isTurnlogError(error, 'proof_invalid')) throw error;
    // With nothing to compare, the prover reports it, and signs nothing.
    return kept.length + witnesses.length === 0 ? result : { ...result, refusal: error.message };
  }
  const own: OwnTree = { trees, stored, origin, reader, note, size };
  const [ofKept, ofWitnesses] = await Promise.all([
    Promise.all(
      kept.map(async (keptCheckpoint) => ({
        name: keptCheckpoint.name,
        found: await compareKept(own, keptCheckpoint),
      })),
    ),
    Promise.all(
      witnesses.map(async (witness) => ({
        name: witness.key.name,
        found: await compareWithWitness(own, witness, signal),
      })),
    ),
  ]);
  const mayBeWrong = isConfirmed(
    own,
    outside,
    ofWitnesses.map(({ found }) => found),
  );
  for (const comparison of [...ofKept, ...ofWitnesses]) {
    const { name, found } = comparison;
    if (found === 'not_of_this_tree') continue;
    if ('size' in found) result.compared.push({ name, size: found.size });
    else if ('trouble' in found) result.troubles.push({ name, trouble: found.trouble });
    else if (mayBeWrong && ofWitnesses.includes(comparison))
      result.outvoted.push(found.refusal.replace(` ${CHANGED_LOG_ADVICE}`, ''));
    else result.refusal ??= found.refusal;
  }
  const isNew = note === undefined && size === 0 && trees.declared.size === 0;
  return { ...result, isNew };
}
