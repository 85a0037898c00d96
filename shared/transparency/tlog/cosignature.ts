/** C2SP tlog-cosignature, v1 over Ed25519: the statement of a witness about a checkpoint. */
import { COSIGNATURE, isSignedBy, type NoteKey, type NoteSigner } from './noteKeys.ts';
import type { NoteSignature } from './note.ts';

const TIME_BYTES = 8;
const SIGNATURE_BYTES = 64;

const messageOf = (text: string, time: bigint): Buffer =>
  Buffer.from(`cosignature/v1\ntime ${time}\n${text}`);

/** Cosigns the text of a checkpoint. `time` is in whole seconds since 1970. */
export function cosign(text: string, { key, sign }: NoteSigner, time: number): NoteSignature {
  const stamp = Buffer.alloc(TIME_BYTES);
  stamp.writeBigUInt64BE(BigInt(time));
  const signature = Buffer.concat([stamp, sign(messageOf(text, BigInt(time)))]);
  return { name: key.name, id: key.id, signature };
}

/**
 * The time at which the witness cosigned the text of a checkpoint, in seconds since 1970; undefined
 * when the signature is not a valid cosignature by this key. The time comes from the clock of
 * another machine, so the caller must decide whether it is plausible.
 */
export function verifyCosignature(
  text: string,
  key: NoteKey,
  { name, id, signature }: NoteSignature,
): number | undefined {
  if (key.type !== COSIGNATURE || name !== key.name || id !== key.id) return undefined;
  if (signature.length !== TIME_BYTES + SIGNATURE_BYTES) return undefined;
  const time = signature.readBigUInt64BE();
  const message = messageOf(text, time);
  if (!isSignedBy(key, message, signature.subarray(TIME_BYTES))) return undefined;
  return time <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(time) : undefined;
}
