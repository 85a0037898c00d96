/** Verifies receipts of erasures without a store. */
import { Type } from '../../domain/jsonSchema.ts';
import { matchesCommitment } from '../../eventlog/encryption/protectedText.ts';
import { isErasure } from '../../eventlog/eventTypes.ts';
import { proofInvalidError } from '../../lib/errors/turnlogError.ts';
import { lazyValidator } from '../../lib/validation/validation.ts';
import { LIMITS } from '../../limits.ts';
import { openCheckpoint } from '../proof/openCheckpoint.ts';
import { mapTexts, shownEventHash, type ShownEvent } from '../proof/shownTexts.ts';
import type { CheckpointText } from '../tlog/checkpoint.ts';
import { leafEntry } from '../tlog/leaf.ts';
import { leafHash } from '../tlog/merkle.ts';
import { formatVkey, parseVkey } from '../tlog/noteKeys.ts';
import { parseProof } from '../tlog/proofFile.ts';
import { verifyInclusion } from '../tlog/verify.ts';
import { requireCosigners, type Cosigners, type TrustedWitnesses } from '../witnessPolicy.ts';
import { toReceiptSubject, type ErasureReceipt } from './receipt.ts';

const strict = { additionalProperties: false };
const Text = Type.String();
const Sha256 = Type.String({ pattern: '^[0-9a-f]{64}$' });
const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

const isReceipt = lazyValidator(
  Type.Object(
    {
      turnlog_receipt: Type.Literal(1),
      subject: Type.Object({ stream: Text, kind: Text, id: Text }, strict),
      events: Count,
      event: Type.Object(
        {
          id: Text,
          stream: Text,
          revision: Count,
          type: Text,
          data: Type.Object({}),
          metadata: Type.Object({ hash: Sha256, prev_hash: Sha256 }),
        },
        strict,
      ),
      leaf: Type.Object({ hash: Sha256, index: Count }, strict),
      proof: Text,
    },
    strict,
  ),
);

/** The content of a verified receipt. */
export interface VerifiedReceipt extends Cosigners {
  subject: ErasureReceipt['subject'];
  events: number;
  event: ShownEvent;
  /** The index of its leaf. */
  index: number;
  checkpoint: CheckpointText;
  vkey: string;
}

const STRINGS_AND_BLANKS = /"(?:[^"\\]|\\.)*"|\s+/g;

const countMembers = (value: unknown): number =>
  typeof value !== 'object' || value === null
    ? 0
    : Object.values(value).reduce<number>(
        (count, member) => count + countMembers(member),
        Array.isArray(value) ? 0 : Object.keys(value).length,
      );

/** Throws `proof_invalid` for a text in which a name stands twice: readers differ in which counts. */
function parseUnambiguous(text: string): unknown {
  if (Buffer.byteLength(text) > LIMITS.proof.receiptBytes)
    throw proofInvalidError(`A receipt has more than ${LIMITS.proof.receiptBytes} bytes.`);
  try {
    const value: unknown = JSON.parse(text);
    const colons = text.replace(STRINGS_AND_BLANKS, '').split(':').length - 1;
    if (colons === countMembers(value)) return value;
  } catch {
    // Invalid JSON, or JSON that is too deep, gives the same error.
  }
  throw proofInvalidError('The receipt is not JSON in which each name stands once.');
}

function parseReceipt(text: string): ErasureReceipt {
  const value = parseUnambiguous(text);
  if (!isReceipt()(value)) throw proofInvalidError('The file is no receipt of an erasure.');
  return value as unknown as ErasureReceipt;
}

/** A clause about the first member that does not fit the event; undefined when all do. */
function faultOf({ subject, events, event, leaf }: ErasureReceipt): string | undefined {
  const { stream, kind, id } = toReceiptSubject(event.stream);
  if (!isErasure(event.type) || event.type !== `${kind}.erased.v1`)
    return `its event is of the type ${JSON.stringify(event.type.slice(0, 100))}, which erases nothing of the stream`;
  if (subject.stream !== stream || subject.kind !== kind || subject.id !== id)
    return `its event is of the stream ${event.stream}, and its subject another one`;
  if (events !== event.revision)
    return `its event has the revision ${event.revision}, and it counts ${events} events`;
  let isDisclosed = true;
  mapTexts(event.data, (shown) => (isDisclosed &&= matchesCommitment(shown)));
  if (!isDisclosed) return 'its event holds a text that was not committed to';
  if (shownEventHash(event) !== event.metadata.hash)
    return 'the hash of its event does not match its content';
  if (leaf.hash !== event.metadata.hash) return 'its leaf is of another event';
  return undefined;
}

function requireFitting(receipt: ErasureReceipt): void {
  let fault: string | undefined;
  try {
    fault = faultOf(receipt);
  } catch {
    // Deep nesting can overflow the stack.
    fault = 'its event has no canonical form';
  }
  if (fault !== undefined) throw proofInvalidError(`The receipt does not fit: ${fault}.`);
}

/**
 * Verifies a receipt against a log's vkey and the witnesses that the verifier trusts. Throws
 * `proof_invalid` with a sentence that names the first mismatch.
 */
export function verifyReceipt(
  text: string,
  { vkey, ...policy }: TrustedWitnesses & { vkey: string },
): VerifiedReceipt {
  const receipt = parseReceipt(text);
  requireFitting(receipt);
  const { subject, events, event, leaf } = receipt;
  const key = parseVkey(vkey.trimEnd());
  const { extra, index, hashes, checkpoint: note } = parseProof(receipt.proof);
  if (extra) throw proofInvalidError('The proof of a receipt has no extra data.');
  if (index !== leaf.index)
    throw proofInvalidError(`The receipt names leaf ${leaf.index}, and its proof leaf ${index}.`);
  const opened = openCheckpoint(note, [key]);
  if (!verifyInclusion(hashes, index, leafHash(leafEntry(leaf.hash, index)), opened.checkpoint))
    throw proofInvalidError('The proof does not lead from the erasure to the checkpoint.');
  const cosigners = requireCosigners(opened.note, policy);
  const { checkpoint } = opened;
  return { subject, events, event, index, checkpoint, vkey: formatVkey(key), ...cosigners };
}
