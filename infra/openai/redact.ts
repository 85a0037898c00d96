import { LIMITS } from '../../shared/limits.ts';

/** Of a provider's text; what is shown of it is a part of this. */
const SCAN_CHARS = 5 * LIMITS.model.quotedChars;

/**
 * Bearer credentials, credentials in URLs, keys by their usual prefix (also when the provider
 * starred a part), and any long run of letters and digits. Names of models and of parameters pass:
 * they are what the message is about.
 */
const SECRETS = [
  /\bbearer\s+\S+/gi,
  /\/\/[^\s/@]+@/g,
  /\b(?:sk|pk|rk|gsk|hf|xai|key|api|token|secret)[-_](?=[\w*.-]*[\d*])[\w*.-]{6,}/gi,
  /(?=[\w*+/=]*\d)(?=[\w*+/=]*[a-z])[\w*+/=]{20,}/gi,
];

/** The beginning of a text, without the word that the cut went through: it could be half a key. */
const beginningOf = (text: string): string =>
  text.length <= SCAN_CHARS ? text : text.slice(0, SCAN_CHARS).replace(/[\w*+/=.-]{1,256}$/, '');

/** So many letters and digits of a key in a row give it away. */
const MIN_SECRET_CHARS = 8;
const ESCAPED_CHARACTER = /(?:%|\\x|\\u00|&#x)([\da-f]{2});?|\\[a-z]/gi;

/** A text's letters and digits alone, however they are parted, escaped or written. */
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

/** A key as it may stand in a text: in base64 it looks different behind 1 or 2 other bytes. */
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
 * Makes the function that says what others said as the log may quote it: on one line, at most 200
 * characters, without `keys` and without whatever else looks like one. Of a text that shows a part
 * of a key in another spelling nothing is quoted.
 */
export function createRedactor(keys: readonly string[]): (text: string) => string {
  const telling = new Set(keys.flatMap(formsOf).flatMap((form) => partsOf(unescaped(form))));
  return (text) => {
    const withoutKeys = keys.reduce((rest, key) => rest.replaceAll(key, '[redacted]'), text);
    const clean = SECRETS.reduce(
      (rest, pattern) => rest.replace(pattern, '[redacted]'),
      beginningOf(withoutKeys)
        .toWellFormed()
        .replace(/[\s\p{C}]+/gu, ' ')
        .trim(),
    );
    if (partsOf(unescaped(clean)).some((part) => telling.has(part)))
      return '[redacted: shows a key]';
    const longest = LIMITS.model.quotedChars;
    return clean.length > longest ? `${clean.slice(0, longest - 1).toWellFormed()}…` : clean;
  };
}
