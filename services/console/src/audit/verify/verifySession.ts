/** Verifies a session, or a receipt, against what a person trusts. Uses no network by itself. */
import { isSame, toBase64, type Bytes } from './bytes.ts';
import { chainVerifier, labelOf, type ChainState } from './chain.ts';
import {
  hashOfLeaf,
  inclusionVerifier,
  makeExtensionProof,
  provesExtension,
  type ReadHash,
  type Tree,
} from './merkle.ts';
import { Mismatch } from './mismatch.ts';
import {
  cosignaturesOf,
  logKeyOf,
  requireSignature,
  type Checkpoint,
  type Cosignature,
  type TrustedKey,
} from './notes.ts';

/** What the person trusts, from other sources than the service. */
export interface Trust {
  /** Keys of logs and of witnesses. */
  keys: readonly TrustedKey[];
  pinned?: Checkpoint | undefined;
}

/** An older tree, and the proof that another one extends it. */
interface Extension {
  older: Tree;
  hashes: readonly Bytes[];
}

/** How the log itself is read, where trees of two sizes have to be compared. */
export type ReadTree = (size: number) => ReadHash;

/** How the log is read to find the hash of the event that it has at a leaf, if it tells. */
export type ReadLeaf = (leaf: number, size: number) => Promise<string | undefined>;

const REWRITTEN =
  'Events before the pinned checkpoint were changed, dropped or added after it was signed, or the log shows others another history. Keep both checkpoints: their signatures are the evidence.';

function twoHistories(older: Checkpoint, newer: Checkpoint, which: string): Mismatch {
  return new Mismatch(
    `The log of ${newer.size} events does not begin with the ${older.size} events of the ${which} checkpoint.`,
    {
      expected: `${older.size} events, root ${toBase64(older.root)}`,
      actual: `${newer.size} events, root ${toBase64(newer.root)}`,
      meaning: REWRITTEN,
    },
  );
}

interface CheckpointOptions {
  readTree: ReadTree;
  /** An extension that is proven already. */
  known?: Extension | undefined;
  /** The key that the verified file itself names. */
  ownKey?: TrustedKey | undefined;
}

/** Throws Mismatch unless the larger of two checkpoints extends the smaller one. */
async function requireExtension(
  [a, b]: readonly [Checkpoint, Checkpoint],
  { known, readTree, pinned }: CheckpointOptions & { pinned: Checkpoint | undefined },
): Promise<void> {
  const [older, newer] = a.size <= b.size ? [a, b] : [b, a];
  const which = older === pinned ? 'pinned' : 'other';
  if (older.size === newer.size) {
    if (isSame(older.root, newer.root)) return;
    throw twoHistories(older, newer, which);
  }
  const isKnown = known?.older.size === older.size && isSame(known.older.root, older.root);
  const proof = isKnown
    ? known.hashes
    : await makeExtensionProof(older.size, newer.size, readTree(newer.size));
  if (!(await provesExtension(proof, older, newer))) throw twoHistories(older, newer, which);
}

/** Whose signature a checkpoint has. */
export interface SignedBy {
  key: TrustedKey;
  /** False for the key that the verified file itself names. */
  isTrusted: boolean;
}

/**
 * Accepts checkpoints of one log: each must have the log's signature and be of the same history as
 * the pinned one and the ones before. Its functions throw Mismatch.
 */
export function checkpointVerifier({ keys, pinned }: Trust, options: CheckpointOptions) {
  let last = pinned;
  let signedBy: SignedBy | undefined;
  const hasLogKeys = keys.some(({ kind }) => kind === 'log');

  async function requireSigned(checkpoint: Checkpoint): Promise<void> {
    const trusted = logKeyOf(checkpoint, keys);
    if (!trusted && hasLogKeys)
      throw new Mismatch('The checkpoint is of a log whose key you do not trust.', {
        expected: keys
          .filter(({ kind }) => kind === 'log')
          .map(({ name }) => name)
          .join(', '),
        actual: checkpoint.origin,
        meaning:
          'A log that was restored, or whose tree was lost, gets another name, which its operator announces. Otherwise somebody replaced it.',
      });
    const key = trusted ?? options.ownKey;
    if (!key) return;
    await requireSignature(checkpoint, key);
    signedBy = { key, isTrusted: trusted !== undefined };
  }

  return {
    signedBy: () => signedBy,
    async accept(checkpoint: Checkpoint): Promise<void> {
      if (pinned && pinned.origin !== checkpoint.origin)
        throw new Mismatch('The checkpoint is of another log than the pinned one.', {
          expected: pinned.origin,
          actual: checkpoint.origin,
          meaning:
            'A log that was restored, or whose tree was lost, gets another name, which its operator announces. Otherwise somebody replaced it. A file of another log needs a checkpoint of that log.',
        });
      if (last === pinned && pinned) await requireSigned(pinned);
      await requireSigned(checkpoint);
      if (last && last.note !== checkpoint.note)
        await requireExtension([last, checkpoint], { ...options, pinned });
      last = checkpoint;
    },
    /** Throws Mismatch when the log, which now has this newest checkpoint, was longer before. */
    requireNotShorter(newest: Checkpoint): void {
      if (pinned && pinned.size > newest.size && pinned.origin === newest.origin)
        throw new Mismatch(
          `The log has ${newest.size} events, and the pinned checkpoint is of ${pinned.size}.`,
          {
            expected: `at least ${pinned.size} events`,
            actual: `${newest.size} events`,
            meaning:
              'The log was rolled back, for example to an older copy: events that were recorded are gone. Right after a switch to another replica, try again in a minute.',
          },
        );
    },
  };
}

/** An event of a session with its proof under a checkpoint. */
export interface EventProof {
  event: unknown;
  leaf: number;
  /** Of the inclusion proof, the leaf’s sibling first. */
  hashes: readonly Bytes[];
  checkpoint: Checkpoint;
}

/** Where a session comes from: the service, or a bundle. */
export interface SessionSource {
  session_id: string;
  events: AsyncIterable<EventProof>;
  /** How many events the source says there are, as far as it is known. */
  total: () => number;
  /** True when inclusion proofs have all hashes, false when they omit what is known. */
  isWhole: boolean;
}

/** What was verified. */
export interface VerifiedSession {
  session_id: string;
  chain: ChainState;
  /** The checkpoint that the last event was proven under. */
  checkpoint: Checkpoint;
  lastLeaf: number;
  signedBy: SignedBy | undefined;
  cosignatures: Cosignature[];
  /** The pinned checkpoint, and how many of the events are under it. */
  pinned: { checkpoint: Checkpoint; events: number } | undefined;
}

interface VerifyOptions {
  trust: Trust;
  checkpoints: ReturnType<typeof checkpointVerifier>;
  /** Finds the event that the log has in place of one that it does not. */
  readLeaf?: ReadLeaf;
  signal: AbortSignal;
  onProgress: (events: number, total: number) => void;
}

/** After this long the page gets its turn. */
const SLICE_MS = 16;

/** Lets the page draw and react. A timer would be slowed down in a tab that is not shown. */
const yieldToPage = (): Promise<void> =>
  new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });

/**
 * Verifies every event of a session: its hash chain, its texts, and that it is in the log. Throws
 * Mismatch for the first one that does not match, and the abort reason of the signal.
 */
export async function verifySession(
  source: SessionSource,
  { trust, checkpoints, readLeaf, signal, onProgress }: VerifyOptions,
): Promise<VerifiedSession> {
  const { state, add } = chainVerifier(source.session_id);
  const pinnedSize = trust.pinned?.size ?? 0;
  let checkpoint: Checkpoint | undefined;
  let lastLeaf = -1;
  let underPinned = 0;
  let isIncluded: ReturnType<typeof inclusionVerifier> | undefined;
  let sliceBegan = performance.now();
  for await (const proof of source.events) {
    // WebCrypto may answer without a task of its own.
    if (performance.now() - sliceBegan > SLICE_MS) {
      await yieldToPage();
      sliceBegan = performance.now();
    }
    signal.throwIfAborted();
    if (!isIncluded || proof.checkpoint !== checkpoint) {
      await checkpoints.accept(proof.checkpoint);
      checkpoint = proof.checkpoint;
      isIncluded = inclusionVerifier(checkpoint, source.isWhole);
    }
    const revision = state.events;
    await add(proof.event);
    const leaf = await hashOfLeaf(state.hash, proof.leaf);
    const fault =
      proof.leaf > lastLeaf
        ? await isIncluded(leaf, proof.leaf, proof.hashes)
        : {
            reason: 'its leaf is not after that of the event before it',
            expected: `a leaf after ${lastLeaf}`,
            actual: `leaf ${proof.leaf}`,
          };
    if (fault) {
      // The proof holds for what the log has there, if that is another event.
      const recorded = await readLeaf?.(proof.leaf, checkpoint!.size).catch(() => undefined);
      const isProven =
        recorded !== undefined &&
        !(await isIncluded(await hashOfLeaf(recorded, proof.leaf), proof.leaf, proof.hashes));
      throw new Mismatch(`The event at revision ${revision} is not in the log: ${fault.reason}.`, {
        event: labelOf(proof.event, revision),
        expected: isProven ? `event hash ${recorded}` : fault.expected,
        actual: isProven ? `event hash ${state.hash}` : fault.actual,
        meaning:
          'The log was signed with another event at this place: the event was changed with its hash, or was added afterwards.',
      });
    }
    lastLeaf = proof.leaf;
    if (lastLeaf < pinnedSize) underPinned += 1;
    onProgress(state.events, source.total());
  }
  if (!checkpoint || state.events !== source.total())
    throw new Mismatch(`There are ${state.events} events, and there should be ${source.total()}.`, {
      expected: `${source.total()} events`,
      actual: `${state.events} events`,
      meaning: 'Events at the end are missing, or were added.',
    });
  return {
    session_id: source.session_id,
    chain: state,
    checkpoint,
    lastLeaf,
    signedBy: checkpoints.signedBy(),
    cosignatures: await cosignaturesOf(checkpoint, trust.keys),
    pinned: trust.pinned && { checkpoint: trust.pinned, events: underPinned },
  };
}
