/** Verifies a session against what a person trusts. Reaches the service by its arguments alone. */
import { toBase64, type Bytes } from './bytes.ts';
import { chainVerifier, labelOf, type ChainState } from './chain.ts';
import { extendsTree, inclusionFault, type ReadHash } from './merkle.ts';
import { Mismatch } from './mismatch.ts';
import { requireSignature, signersOf } from './notes.ts';
import type { Checkpoint, Signer, TrustedKey } from './notes.ts';

/** The checkpoint and keys that the person trusts, from other sources than the service. */
export interface Trust {
  /** Keys of logs and of witnesses. */
  keys: readonly TrustedKey[];
  pinned?: Checkpoint | undefined;
}

const REWRITTEN =
  'Events before the older checkpoint were changed, dropped or added after it was signed, or the log shows others another history. Keep both checkpoints: their signatures are the evidence.';
const ROLLED_BACK =
  'The log was rolled back, for example to an older copy: events that were recorded are gone. Right after a switch to another replica, try again in a minute.';
const RENAMED =
  'A log that was restored, or whose tree was lost, gets another name, which its operator announces. Otherwise it was replaced.';

/**
 * Accepts checkpoints of one log, and throws Mismatch for others: each must have the signature of a
 * trusted key of a log, where there is one, and be of the same history as the pinned checkpoint and
 * those before. `readTree` reads the log to compare trees of two sizes.
 */
export function checkpointVerifier(
  { keys, pinned }: Trust,
  readTree: (size: number) => ReadHash,
): (checkpoint: Checkpoint) => Promise<void> {
  let last = pinned;
  const logs = keys.filter(({ kind }) => kind === 'log');

  async function requireSigned(checkpoint: Checkpoint): Promise<void> {
    const { origin } = checkpoint;
    const key = logs.find(({ name }) => name === origin);
    if (key) return requireSignature(checkpoint, key);
    if (logs.length === 0) return undefined;
    const expected = logs.map(({ name }) => name).join(', ');
    const message = 'The checkpoint is of a log whose key you do not trust.';
    throw new Mismatch(message, { expected, actual: origin, meaning: RENAMED });
  }

  return async (checkpoint) => {
    if (last && last.origin !== checkpoint.origin)
      throw new Mismatch('The checkpoint is of another log than the pinned one.', {
        expected: last.origin,
        actual: checkpoint.origin,
        meaning: RENAMED,
      });
    if (last && last === pinned) await requireSigned(pinned);
    await requireSigned(checkpoint);
    if (last && last.size > checkpoint.size)
      throw new Mismatch(
        `The log has ${checkpoint.size} events, and a checkpoint before it had ${last.size}.`,
        { expected: `${last.size} events`, actual: `${checkpoint.size}`, meaning: ROLLED_BACK },
      );
    const isSameNote = last?.note === checkpoint.note;
    if (last && !isSameNote && !(await extendsTree(last, checkpoint, readTree(checkpoint.size))))
      throw new Mismatch(
        `The log of ${checkpoint.size} events does not begin with the ${last.size} events of the ${last === pinned ? 'pinned' : 'earlier'} checkpoint.`,
        {
          expected: `root ${toBase64(last.root)} of ${last.size} events`,
          actual: `root ${toBase64(checkpoint.root)} of ${checkpoint.size} events`,
          meaning: REWRITTEN,
        },
      );
    last = checkpoint;
  };
}

/** An event of a session with its proof under a checkpoint: the leaf’s sibling comes first. */
export interface EventProof {
  event: unknown;
  leaf: number;
  hashes: readonly Bytes[];
  checkpoint: Checkpoint;
}

/** The result of a verification. */
export interface VerifiedSession {
  chain: ChainState;
  /** The checkpoint that the last event was proven under. */
  checkpoint: Checkpoint;
  lastLeaf: number;
  signers: Signer[];
  /** How many of the events are under the pinned checkpoint. */
  pinnedEvents: number;
}

interface Verification {
  session_id: string;
  proofs: AsyncIterable<EventProof>;
  /** How many events the service says there are, as far as it is known. */
  total: () => number;
  trust: Trust;
  accept: ReturnType<typeof checkpointVerifier>;
  signal: AbortSignal;
  onProgress: (events: number, total: number) => void;
}

/** The page draws and reacts after this time: WebCrypto may answer within the same task. */
const SLICE_MS = 30;

/**
 * Verifies every event of a session: its hash chain, its texts, and that it is in the log. Throws
 * Mismatch for the first one that does not match, and the abort reason of the signal.
 */
export async function verifySession(verification: Verification): Promise<VerifiedSession> {
  const { session_id, proofs, total, trust, accept, signal, onProgress } = verification;
  const { state, add } = chainVerifier(session_id);
  let checkpoint: Checkpoint | undefined;
  let [lastLeaf, pinnedEvents, sliceBegan] = [-1, 0, performance.now()];
  for await (const proof of proofs) {
    if (performance.now() - sliceBegan > SLICE_MS) {
      await new Promise((resolve) => setTimeout(resolve));
      sliceBegan = performance.now();
    }
    signal.throwIfAborted();
    if (proof.checkpoint !== checkpoint) await accept(proof.checkpoint);
    checkpoint = proof.checkpoint;
    const event = labelOf(proof.event, state.events);
    await add(proof.event);
    const isLater = proof.leaf > lastLeaf;
    const fault = isLater
      ? await inclusionFault(checkpoint, { hash: state.hash, ...proof })
      : `leaf ${proof.leaf}, after leaf ${lastLeaf}`;
    if (fault !== undefined)
      throw new Mismatch(`The event at revision ${event.revision} is not in the log.`, {
        event,
        expected: isLater
          ? `root ${toBase64(checkpoint.root)}`
          : 'a later leaf than the event before',
        actual: fault,
        meaning:
          'The event was changed together with its hash, or added, after the log was signed with another event at this place.',
      });
    lastLeaf = proof.leaf;
    if (lastLeaf < (trust.pinned?.size ?? 0)) pinnedEvents += 1;
    onProgress(state.events, total());
  }
  if (!checkpoint || state.events !== total())
    throw new Mismatch(`There are ${state.events} events, and there should be ${total()}.`, {
      meaning: 'Events at the end are missing, or were added.',
    });
  const signers = await signersOf(checkpoint, trust.keys);
  return { chain: state, checkpoint, lastLeaf, signers, pinnedEvents };
}
