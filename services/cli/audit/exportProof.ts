import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { StoredEvent } from '../../../shared/ports/eventStore.ts';
import {
  proofUnder,
  proveEvent,
  type EventProof,
} from '../../../shared/transparency/proof/proveEvent.ts';
import { provenOf } from '../../../shared/transparency/proof/sessionProof.ts';
import { formatVkey, parseVkey } from '../../../shared/transparency/tlog/noteKeys.ts';
import { openCheckpointFile, readTextFile, readVkeys } from './checkpoints.ts';
import type { CliContext } from '../context.ts';

/** How long an export waits for a checkpoint that covers the session. */
const WAIT_MS = 5_000;

/** The proof of an event, and the key that signed its checkpoint. */
interface Proven {
  proof: EventProof;
  vkey: string;
}

/** Rejects with `configuration_invalid` unless the checkpoint is one of this log that covers the event. */
async function proveUnderCheckpoint(
  { operator }: CliContext,
  head: StoredEvent,
  { text, file, vkeys }: { text: string; file: string; vkeys: readonly string[] },
): Promise<Proven> {
  const { note, checkpoint } = openCheckpointFile(text, file, vkeys.map(parseVkey));
  const tiles = await operator.tiles();
  const { size } = await tiles.state();
  const wrong = (why: string): TurnlogError =>
    new TurnlogError('configuration_invalid', `The checkpoint in ${file} ${why}`);
  if (checkpoint.size > size)
    throw wrong(`is of ${checkpoint.size} leaves, and the transparency log has ${size}.`);
  const proof = await proofUnder(tiles, provenOf(head), text);
  if (!proof) throw wrong('does not cover the last event of the session: it came later.');
  return { proof, vkey: formatVkey(note.by[0]!) };
}

/** The proof of an export, under the newest checkpoint or the one of a file. */
export async function proveForExport(
  context: CliContext,
  head: StoredEvent,
  { checkpoint: file, vkey: given }: { checkpoint?: string; vkey?: string },
): Promise<Proven> {
  const { operator } = context;
  const text = await readTextFile(file);
  const { vkeys } = await readVkeys(operator);
  if (text !== undefined) {
    const signed = given === undefined ? vkeys : [given];
    return proveUnderCheckpoint(context, head, { text, file: file!, vkeys: signed });
  }
  const proof = await proveEvent(await operator.tiles(), provenOf(head), WAIT_MS);
  return { proof, vkey: vkeys[0]! };
}
