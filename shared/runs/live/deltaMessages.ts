import { createSecretKey } from 'node:crypto';
import type { Static } from 'typebox';
import { Type } from '../../domain/jsonSchema.ts';
import { decrypt, encrypt } from '../../eventlog/encryption/aesGcm.ts';
import type { Keyring } from '../../eventlog/encryption/keyring.ts';
import type { TextKey } from '../../eventlog/encryption/protectedText.ts';
import { lazyValidator } from '../../lib/validation/validation.ts';

const count = Type.Integer({ minimum: 0, maximum: 1_000_000_000 });
const name = Type.String({ minLength: 1, maxLength: 100 });
const Of = { session_id: name, turn: count };

const Message = Type.Union([
  /** Requests the output of a turn from a position on. */
  Type.Object({
    is: Type.Literal('follow'),
    ...Of,
    to: name,
    round: count,
    reasoning: Type.Optional(count),
    chars: count,
  }),
  /**
   * More text of a turn, or of its reasoning, from the character `chars` on, sealed with the key that
   * has the id `key`.
   */
  Type.Object({
    is: Type.Enum(['text', 'reasoning']),
    ...Of,
    round: count,
    chars: count,
    key: name,
    box: Type.String(),
  }),
  /** Announces that the record of a turn has grown. */
  Type.Object({ is: Type.Literal('recorded'), ...Of }),
]);
/** A message between processes about a followed turn. */
export type DeltaMessage = Static<typeof Message>;
export type TextDelta = Extract<DeltaMessage, { box: string }>;

const validator = lazyValidator(Message);

/** Parses a message of another process; undefined if it is not valid. */
export function parseDeltaMessage(text: string): DeltaMessage | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return validator()(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Binds a text to its position in its turn. */
const associatedDataOf = ({
  is,
  session_id,
  turn,
  round,
  chars,
}: Omit<TextDelta, 'key' | 'box'>): string =>
  `${is === 'text' ? 'delta' : is}/${session_id}/${turn}/${round}/${chars}`;

const keyOf = ({ secret }: TextKey) => createSecretKey(secret, 'base64url');

/**
 * Seals a text for another process with the key of its session, so that the transport can't read
 * it.
 */
export function encryptDelta(
  of: { session_id: string; turn: number },
  { is, round, chars }: Pick<TextDelta, 'is' | 'round' | 'chars'>,
  text: string,
  key: TextKey,
): TextDelta {
  const { session_id, turn } = of;
  const at = { is, session_id, turn, round, chars };
  const box = encrypt(Buffer.from(text), keyOf(key), associatedDataOf(at)).toString('base64url');
  return { ...at, key: key.id, box };
}

/** The text of a message; undefined if it was not sealed for this position. */
export async function decryptDelta(
  message: TextDelta,
  keys: Pick<Keyring, 'find'>,
): Promise<string | undefined> {
  try {
    const key = (await keys.find(new Set([message.key]))).get(message.key);
    const box = Buffer.from(message.box, 'base64url');
    return key && decrypt(box, keyOf(key), associatedDataOf(message)).toString();
  } catch {
    return undefined;
  }
}
