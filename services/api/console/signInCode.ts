import { randomBytes } from 'node:crypto';
import { hashApiKey, hashesAreEqual } from '../../../shared/accounts/apiKey.ts';

/** How long a sign-in code is valid. */
export const SIGN_IN_CODE_MS = 15 * 60_000;

/** A random code that signs in to the console once. Only the process that issues it accepts it. */
export interface SignInCode {
  /** Issues the code, 32 characters of base64url; it expires 15 minutes later. */
  issue(): string;
  /** Uses up the code. Returns false if it is another one, or is expired or used up. */
  take(code: string): boolean;
  /** Makes a code valid again that was taken in vain, until it expires. */
  giveBack(): void;
}

/** Creates a code. `now` returns milliseconds of a clock that never goes back. */
export function createSignInCode(now: () => number = () => performance.now()): SignInCode {
  const text = randomBytes(24).toString('base64url');
  const hash = hashApiKey(text);
  let expiresAt = -Infinity;
  let isUsed = false;
  return {
    issue() {
      expiresAt = now() + SIGN_IN_CODE_MS;
      return text;
    },
    take(code) {
      const matches = hashesAreEqual(hash, hashApiKey(code));
      if (!matches || isUsed || now() >= expiresAt) return false;
      isUsed = true;
      return true;
    },
    giveBack() {
      isUsed = false;
    },
  };
}
