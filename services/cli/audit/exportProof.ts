import { reportDamage } from '../../../shared/eventlog/reading/reportDamage.ts';
import { proofInvalidError, TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { StoredEvent } from '../../../shared/ports/eventStore.ts';
import {
  proofUnder,
  proveEvent,
  type EventProof,
} from '../../../shared/transparency/proof/proveEvent.ts';
import { toProvenEvent } from '../../../shared/transparency/proof/sessionProof.ts';
import { NO_LEAF } from '../../../shared/transparency/leaves/leafComparison.ts';
import type { TileReader } from '../../../shared/transparency/tileStore.ts';
import {
  parseCheckpoint,
  type CheckpointText,
} from '../../../shared/transparency/tlog/checkpoint.ts';
import type { ConsistencyFile } from '../../../shared/transparency/tlog/consistencyFile.ts';
import { parseNote } from '../../../shared/transparency/tlog/note.ts';
import { consistencyProof } from '../../../shared/transparency/tlog/proofs.ts';
import { verifyConsistency, type TreeHead } from '../../../shared/transparency/tlog/verify.ts';
import { formatVkey, parseVkey } from '../../../shared/transparency/tlog/noteKeys.ts';
import { openCheckpointFile, readOwnHead, readVkeys, signingVkey } from './checkpoints.ts';
import { readTextFile } from '../textFile.ts';
import type { CliContext } from '../context.ts';

/** How long an export waits for a checkpoint that covers the session. */
const WAIT_MS = 5_000;

/** The proof of a session's last event, and the key that signed its checkpoint. */
interface ExportProof {
  proof: EventProof;
  vkey: string;
  /** The older tree of a checkpoint that does not cover the session, which this one extends. */
  consistency: ConsistencyFile | undefined;
}

/** The checkpoint that an export is proven under, or is proven to extend. */
interface Given {
  text: string;
  head: CheckpointText;
  /** The key that signed it. */
  vkey: string;
}

/** Rejects with `configuration_invalid` unless the checkpoint is one of this log. */
async function openGiven(
  tiles: TileReader,
  file: string,
  { text, vkeys }: { text: string; vkeys: readonly string[] },
): Promise<Given> {
  const { note, checkpoint } = openCheckpointFile(text, file, vkeys.map(parseVkey));
  const { size } = await tiles.state();
  if (checkpoint.size > size)
    throw new TurnlogError(
      'configuration_invalid',
      `The checkpoint in ${file} is of ${checkpoint.size} leaves, and the transparency log has ${size}.`,
    );
  return { text, head: checkpoint, vkey: formatVkey(note.by[0]!) };
}

/** Rejects with `proof_invalid` unless the newest checkpoint extends the given one. */
async function proveConsistency(
  tiles: TileReader,
  older: TreeHead,
  checkpoint: string,
): Promise<ConsistencyFile> {
  const newest = parseCheckpoint(parseNote(checkpoint).text);
  const hashes = await consistencyProof(tiles, older.size, newest.size);
  if (verifyConsistency(hashes, older, newest)) return { older, hashes };
  throw proofInvalidError(
    `The transparency log does not extend the checkpoint of ${older.size} leaves that was given: the log has shown two histories, or files were changed. audit verify --checkpoint says more.`,
  );
}

/** Proves the last event of an export under the newest checkpoint. Throws `stream_damaged`. */
async function proveNewest(
  operator: CliContext['operator'],
  head: StoredEvent,
): Promise<EventProof> {
  const proof = await proveEvent(await operator.tiles(), toProvenEvent(head), WAIT_MS);
  if (proof) return proof;
  const { stream, revision } = head;
  throw await reportDamage(operator, stream, {
    reason: `the event at revision ${revision} ${NO_LEAF}`,
    revision,
  });
}

/**
 * The proof of an export: under the newest checkpoint, or under the one of a file. Where that one
 * is older than the session's last event, under the newest one, with the proof that it extends the
 * older one.
 */
export async function proveForExport(
  { operator }: CliContext,
  head: StoredEvent,
  { checkpoint: file, vkey: given }: { checkpoint?: string; vkey?: string },
): Promise<ExportProof> {
  const text = file === undefined ? undefined : await readTextFile(file);
  const tiles = await operator.tiles();
  const { vkeys } = await readVkeys(operator, (await readOwnHead(operator))?.origin);
  if (text === undefined) {
    const proof = await proveNewest(operator, head);
    return { proof, vkey: signingVkey(proof.checkpoint, vkeys), consistency: undefined };
  }
  const acceptedVkeys = given === undefined ? vkeys : [given];
  const older = await openGiven(tiles, file!, { text, vkeys: acceptedVkeys });
  const under = await proofUnder(tiles, toProvenEvent(head), older.text);
  if (under) return { proof: under, vkey: older.vkey, consistency: undefined };
  const proof = await proveNewest(operator, head);
  const consistency = await proveConsistency(tiles, older.head, proof.checkpoint);
  return { proof, vkey: signingVkey(proof.checkpoint, [older.vkey, ...vkeys]), consistency };
}
