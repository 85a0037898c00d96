import { LIMITS } from '../../shared/limits.ts';

/** Of a provider's text; what is shown of it is a part of this. */
const LOOKED_AT = 5 * LIMITS.model.quotedChars;

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
  text.length <= LOOKED_AT ? text : text.slice(0, LOOKED_AT).replace(/[\w*+/=.-]{1,256}$/, '');

/**
 * What others said, as the log may quote it: on one line, at most 200 characters, without `keys`
 * and without whatever else looks like one.
 */
export function redact(text: string, keys: readonly string[]): string {
  const withoutKeys = keys.reduce((rest, key) => rest.replaceAll(key, '[redacted]'), text);
  const clean = SECRETS.reduce(
    (rest, pattern) => rest.replace(pattern, '[redacted]'),
    beginningOf(withoutKeys)
      .toWellFormed()
      .replace(/[\s\p{C}]+/gu, ' ')
      .trim(),
  );
  const longest = LIMITS.model.quotedChars;
  return clean.length > longest ? `${clean.slice(0, longest - 1).toWellFormed()}…` : clean;
}
