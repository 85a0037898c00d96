/**
 * What a terminal obeys rather than shows: control characters (line breaks and escape sequences
 * too), characters that turn the direction of writing or have no width, and halves of characters.
 * Joiners within emoji stay.
 */
const UNSEEN = /(?![\u200C\u200D])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

const escaped = (text: string): string =>
  Array.from(
    { length: text.length },
    (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`,
  ).join('');

/** A text of somebody else's, on one line and as what it is: `\u001b[2J` does nothing. */
export const escapeControls = (text: string): string => text.replace(UNSEEN, escaped);

/** JSON on one line, in which no such character stands as it is either. */
export const jsonLine = (value: unknown): string => escapeControls(JSON.stringify(value));

/** A text without the user and password of any URL in it. */
export const maskCredentials = (text: string): string =>
  text.replace(/([a-z][\w+.-]*:\/\/)\S*@/gi, '$1…@');
