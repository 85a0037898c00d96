import { LIMITS } from '../../shared/limits.ts';

/** The scanned part of a provider's text; quotations are a part of it. */
const SCAN_CHARS = 5 * LIMITS.model.quotedChars;

/**
 * Bearer credentials, credentials in URLs, keys by their usual prefix (also when the provider
 * starred a part), and any long run of letters and digits. Names of models and parameters are kept,
 * because the message is about them.
 */
const SECRETS = [
  /\bbearer\s+\S+/gi,
  /\/\/[^\s/@]+@/g,
  /\b(?:sk|pk|rk|gsk|hf|xai|key|api|token|secret)[-_](?=[\w*.-]*[\d*])[\w*.-]{6,}/gi,
  /(?=[\w*+/=]*\d)(?=[\w*+/=]*[a-z])[\w*+/=]{20,}/gi,
];

/** The beginning of a text, without a word cut in half, which could be part of a key. */
const beginningOf = (text: string): string =>
  text.length <= SCAN_CHARS ? text : text.slice(0, SCAN_CHARS).replace(/[\w*+/=.-]{1,256}$/, '');

/** This many consecutive letters and digits of a key count as a disclosure. */
const MIN_SECRET_CHARS = 8;
const ESCAPED_CHARACTER = /(?:%|\\x|\\u00|&#x)([\da-f]{2});?|\\[a-z]/gi;

/** The letters and digits of a text, regardless of separators, escapes and case. */
const unescaped = (text: string): string =>
  text
    .replace(ESCAPED_CHARACTER, (_, code?: string) =>
      code === undefined ? '' : String.fromCharCode(Number.parseInt(code, 16)),
    )
    .replace(/[^a-z\d]/gi, '')
    .toLowerCase();

const partsOf = (text: string): string[] =>
  Array.from({ length: Math.max(0, text.length - MIN_SECRET_CHARS + 1) }, (_, at) =>
    text.slice(at, at + MIN_SECRET_CHARS),
  );

/** The forms of a key in a text. Base64 differs after 1 or 2 preceding bytes. */
const formsOf = (key: string): string[] => [
  key,
  Buffer.from(key).toString('hex'),
  ...['', ' ', '  '].map((before) =>
    Buffer.from(before + key)
      .toString('base64')
      .slice(Math.ceil((before.length * 8) / 6))
      .replace(/.={1,2}$/, ''),
  ),
];

/**
 * Creates the function that prepares foreign texts for quotation in the log: on one line, at most
 * 200 characters, without `keys` and anything that looks like a key. A text that shows part of a
 * key in another encoding is not quoted at all.
 */
export function createRedactor(keys: readonly string[]): (text: string) => string {
  const secretParts = new Set(keys.flatMap(formsOf).flatMap((form) => partsOf(unescaped(form))));
  return (text) => {
    const withoutKeys = keys.reduce((rest, key) => rest.replaceAll(key, '[redacted]'), text);
    const clean = SECRETS.reduce(
      (rest, pattern) => rest.replace(pattern, '[redacted]'),
      beginningOf(withoutKeys)
        .toWellFormed()
        .replace(/[\s\p{C}]+/gu, ' ')
        .trim(),
    );
    if (partsOf(unescaped(clean)).some((part) => secretParts.has(part)))
      return '[redacted: shows a key]';
    const longest = LIMITS.model.quotedChars;
    return clean.length > longest ? `${clean.slice(0, longest - 1).toWellFormed()}…` : clean;
  };
}
