/**
 * Characters that control a terminal or are invisible: control characters, line breaks, escape
 * sequences, direction overrides, zero-width characters and lone surrogates. Joiners in emoji stay.
 */
const UNPRINTABLE = /(?![\u200C\u200D])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

const escapeCharacter = (text: string): string =>
  Array.from(
    { length: text.length },
    (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`,
  ).join('');

/** Escapes an untrusted text so that it stays on one line and can't control the terminal. */
export const escapeControls = (text: string): string => text.replace(UNPRINTABLE, escapeCharacter);

/** A line of the log, as it is written in JSON. */
interface LogLine {
  level: string;
  /** ISO 8601. */
  time: string;
  msg?: string;
  err?: { stack?: string };
  [field: string]: unknown;
}

const fieldText = ([name, value]: [string, unknown]): string =>
  `${name}=${typeof value === 'string' && /^[^\s"]+$/.test(value) ? value : JSON.stringify(value)}`;

/**
 * Formats a JSON line of the log for people: local time, level, message and fields, then the stack
 * of an error on separate lines.
 */
export function formatLogLine(json: string): string {
  const { level, time, msg = '', err, ...fields } = JSON.parse(json) as LogLine;
  const [clockTime] = new Date(time).toTimeString().split(' ');
  const head = [
    clockTime,
    level.toUpperCase().padEnd(5),
    msg,
    ...Object.entries(fields).map(fieldText),
  ];
  const stack = err?.stack?.split('\n').map((line) => `    ${line.trim()}`) ?? [];
  return [head.join(' '), ...stack].map((line) => `${escapeControls(line)}\n`).join('');
}
