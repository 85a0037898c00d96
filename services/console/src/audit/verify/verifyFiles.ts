/** Verifies files that were handed over: bundles of sessions, and receipts of erasures. */
import { openBundle, readConsistency, readProofFile, type Bundle } from './bundle.ts';
import { isEvent, commitmentOf, recomputeHash, type DisclosedText } from './chain.ts';
import { hashOfLeaf, inclusionVerifier, provesExtension } from './merkle.ts';
import { Mismatch, unreadable } from './mismatch.ts';
import { cosignaturesOf, readCheckpoint, readKey, type Checkpoint } from './notes.ts';
import {
  checkpointVerifier,
  verifySession,
  type EventProof,
  type ReadTree,
  type Trust,
  type VerifiedSession,
} from './verifySession.ts';

interface BundleOptions {
  trust: Trust;
  /** Reads the tree of the service’s log, where the bundle does not prove the pinned checkpoint. */
  readTree: ReadTree;
  signal: AbortSignal;
  onProgress: (events: number, total: number) => void;
}

async function* eventsOf({ lines }: Bundle, checkpoint: Checkpoint): AsyncGenerator<EventProof> {
  for await (const line of lines) yield { ...line, checkpoint };
}

/** The older tree that the bundle proves, verified. */
async function extensionOf(bundle: Bundle, checkpoint: Checkpoint) {
  if (bundle.consistency === '') return undefined;
  const known = readConsistency(bundle.consistency);
  if (await provesExtension(known.hashes, known.older, checkpoint)) return known;
  throw new Mismatch('The bundle’s consistency proof is wrong.', {
    meaning: 'The bundle was changed, or its log does not extend the older one that it names.',
  });
}

/**
 * Verifies a bundle. Without a trusted key of the log, its own key is used, which proves nothing by
 * itself. Throws Mismatch, and the abort reason of the signal.
 */
export async function verifyBundleFile(
  file: Blob,
  { trust, readTree, signal, onProgress }: BundleOptions,
): Promise<VerifiedSession> {
  const bundle = await openBundle(file);
  const checkpoint = readCheckpoint(bundle.checkpoint);
  const last = readProofFile(bundle.proof);
  if (last.checkpoint !== bundle.checkpoint)
    throw unreadable('The proof of the bundle is of another checkpoint.');
  const known = await extensionOf(bundle, checkpoint);
  const hasLogKeys = trust.keys.some(({ kind }) => kind === 'log');
  const ownKey = hasLogKeys ? undefined : await readKey(bundle.vkey);
  const checkpoints = checkpointVerifier(trust, { readTree, known, ownKey });
  const verified = await verifySession(
    {
      session_id: bundle.session_id,
      events: eventsOf(bundle, checkpoint),
      total: () => bundle.events,
      isWhole: false,
    },
    { trust, checkpoints, signal, onProgress },
  );
  const leaf = await hashOfLeaf(verified.chain.hash, last.index);
  const fault = await inclusionVerifier(checkpoint, true)(leaf, last.index, last.hashes);
  if (fault || last.index !== verified.lastLeaf)
    throw new Mismatch('The proof of the last event does not lead to the checkpoint.', {
      meaning: 'Events at the end were changed, added or cut off.',
    });
  return verified;
}

type Members = Readonly<Record<string, unknown>>;
const RECEIPT = 'event,events,leaf,proof,subject,turnlog_receipt';

interface ReceiptOptions {
  /** The id of what should have been erased. */
  subjectId: string;
  trust: Trust;
  readTree: ReadTree;
}

/** Verifies the receipt of an erasure. Throws Mismatch. */
export async function verifyReceiptOf(
  receipt: Members,
  { subjectId, trust, readTree }: ReceiptOptions,
) {
  const { event, leaf, proof, subject, events } = receipt;
  const { stream, kind, id } = subject as Members;
  if (Object.keys(receipt).toSorted().join() !== RECEIPT || !isEvent(event))
    throw unreadable('This is no receipt of an erasure.');
  const isOfSubject =
    event.type === `${String(kind)}.erased.v1` &&
    event.stream === stream &&
    stream === `${String(kind)}-${subjectId}` &&
    id === subjectId &&
    event.revision === events;
  if (!isOfSubject)
    throw new Mismatch('The receipt names another subject than its event.', {
      expected: `${String(kind)}.erased.v1 of ${subjectId}`,
      actual: `${String(event.type)} of ${String(event.stream)}`,
      meaning: 'The receipt was changed, or is of another erasure.',
    });
  const disclosed: DisclosedText[] = [];
  const hash = await recomputeHash(event, (what, text) => {
    if (what === 'disclosed') disclosed.push(text);
  });
  const commitments = await Promise.all(disclosed.map(commitmentOf));
  const { hash: leafEvent, index } = leaf as Members;
  if (hash !== event.metadata['hash'] || hash !== leafEvent)
    throw new Mismatch('The erasure does not match its hash.', {
      expected: String(leafEvent),
      actual: hash,
      meaning: 'The receipt was changed after it was issued.',
    });
  if (commitments.some((commitment, at) => commitment !== disclosed[at]!.sha256))
    throw new Mismatch('A text of the erasure is not the recorded one.', {
      meaning: 'The receipt was changed after it was issued.',
    });
  const shown = readProofFile(String(proof));
  const checkpoint = readCheckpoint(shown.checkpoint);
  const checkpoints = checkpointVerifier(trust, { readTree });
  await checkpoints.accept(checkpoint);
  const leafHash = await hashOfLeaf(hash, shown.index);
  const fault = await inclusionVerifier(checkpoint, true)(leafHash, shown.index, shown.hashes);
  if (fault || shown.index !== index)
    throw new Mismatch('The erasure is not in the log.', {
      meaning: 'The receipt was changed, or its log was signed without this erasure.',
    });
  return {
    checkpoint,
    signedBy: checkpoints.signedBy(),
    cosignatures: await cosignaturesOf(checkpoint, trust.keys),
  };
}
