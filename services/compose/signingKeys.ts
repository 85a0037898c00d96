import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import {
  createSecret,
  readSecret,
  unusableSecretError,
  type SecretFile,
} from '../../infra/files/secretFile.ts';

const PEM = /-----BEGIN PRIVATE KEY-----[^-]+-----END PRIVATE KEY-----/g;
/** More than a change of keys needs. */
const MAX_KEYS = 8;

const signingKeySecret = (file: string): SecretFile => ({
  file,
  name: 'signing key file',
  how: 'Put it back, or make a key: openssl genpkey -algorithm ed25519 -out log-signing-key.pem',
});

function parsePrivateKey(text: string, secret: SecretFile): KeyObject {
  try {
    return createPrivateKey(text);
  } catch {
    // The error of the parser may quote the key.
    throw unusableSecretError(secret, 'it holds a private key that is not whole.');
  }
}

/**
 * The Ed25519 keys of a file of PEM texts, to which others than its owner and group may have no right.
 * Errors: `configuration_invalid` where it can't be read, or holds anything else.
 */
export function readSigningKeys(file: string): KeyObject[] {
  const secret = signingKeySecret(file);
  const texts = readSecret(secret).match(PEM) ?? [];
  if (texts.length === 0 || texts.length > MAX_KEYS)
    throw unusableSecretError(
      secret,
      `it holds ${texts.length} private keys: 1 to ${MAX_KEYS} are wanted.`,
    );
  const keys = texts.map((text) => parsePrivateKey(text, secret));
  if (keys.some(({ asymmetricKeyType }) => asymmetricKeyType !== 'ed25519'))
    throw unusableSecretError(secret, 'it holds a key that is not an Ed25519 key.');
  return keys;
}

/** Makes a file with one new key where there is none. Errors: `configuration_invalid`. */
export const makeSigningKey = (file: string): void =>
  createSecret(signingKeySecret(file), () =>
    generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  );
