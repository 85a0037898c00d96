import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import {
  createSecret,
  readSecret,
  unusableSecretError,
  type SecretFile,
} from '../../infra/files/secretFile.ts';

const PEM = /-----BEGIN PRIVATE KEY-----[^-]+-----END PRIVATE KEY-----/g;
/** More than a key rotation needs. */
const MAX_KEYS = 8;

const signingKeySecret = (file: string): SecretFile => ({
  file,
  name: 'signing key file',
  how: 'Restore it, or create a key: openssl genpkey -algorithm ed25519 -out log-signing-key.pem',
});

function parsePrivateKey(text: string, secret: SecretFile): KeyObject {
  try {
    return createPrivateKey(text);
  } catch {
    // The parser's error may quote the key.
    throw unusableSecretError(secret, 'it holds an incomplete private key.');
  }
}

/**
 * Reads the Ed25519 keys of a PEM file, which only its owner and group may access. Throws
 * `configuration_invalid` if it can't be read or holds anything else.
 */
export function readSigningKeys(file: string): KeyObject[] {
  const secret = signingKeySecret(file);
  const texts = readSecret(secret).match(PEM) ?? [];
  if (texts.length === 0 || texts.length > MAX_KEYS)
    throw unusableSecretError(
      secret,
      `it holds ${texts.length} private keys: it must hold 1 to ${MAX_KEYS}. ${secret.how}`,
    );
  const keys = texts.map((text) => parsePrivateKey(text, secret));
  if (keys.some(({ asymmetricKeyType }) => asymmetricKeyType !== 'ed25519'))
    throw unusableSecretError(secret, 'it holds a key that is not an Ed25519 key.');
  return keys;
}

/** Creates a file with a new key if it is missing. */
export const makeSigningKey = (file: string): void =>
  createSecret(signingKeySecret(file), () =>
    generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  );
