const LONGEST = 300;

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

/**
 * A provider's own words as they may be shown to a client: on one line, at most 300 characters,
 * with whatever looks like a key taken out.
 */
export function redact(text: string, key: string | undefined): string {
  const withoutKey = key ? text.replaceAll(key, '[redacted]') : text;
  const clean = SECRETS.reduce(
    (rest, pattern) => rest.replace(pattern, '[redacted]'),
    withoutKey
      .slice(0, 10 * LONGEST)
      .toWellFormed()
      .replace(/[\s\p{C}]+/gu, ' ')
      .trim(),
  );
  return clean.length > LONGEST ? `${clean.slice(0, LONGEST - 1).toWellFormed()}…` : clean;
}
