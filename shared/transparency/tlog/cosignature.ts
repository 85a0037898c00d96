/** C2SP tlog-cosignature, v1 over Ed25519: what a witness says of a checkpoint. */
import { COSIGNATURE, isSignedBy, type NoteKey, type NoteSigner } from './noteKeys.ts';
import type { NoteSignature } from './note.ts';

const TIME_BYTES = 8;
const SIGNATURE_BYTES = 64;

const messageOf = (text: string, time: bigint): Buffer =>
  Buffer.from(`cosignature/v1\ntime ${time}\n${text}`);

/** The cosignature of the text of a checkpoint, at a time in whole seconds since 1970. */
export function cosign(text: string, { key, sign }: NoteSigner, time: number): NoteSignature {
  const stamp = Buffer.alloc(TIME_BYTES);
  stamp.writeBigUInt64BE(BigInt(time));
  const signature = Buffer.concat([stamp, sign(messageOf(text, BigInt(time)))]);
  return { name: key.name, id: key.id, signature };
}

/**
 * When the witness of this key cosigned the text of a checkpoint, in seconds since 1970; undefined
 * where the signature is not its cosignature of it. A clock of another machine says when: what can't
 * be the present is for the caller to judge.
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
