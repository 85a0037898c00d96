/** HTML that can't contain a value which was not escaped. */

const HTML = Symbol('HTML');

/** A piece of HTML. Only this module makes one. */
export interface HtmlPiece {
  readonly [HTML]: string;
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/**
 * Control characters, but for line feed and tab, and characters that are invisible or change the
 * order of others, which could make a text read as another one.
 */
// eslint-disable-next-line no-control-regex
const HIDDEN = /(?![\n\t\u200C\u200D])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

const showHidden = (character: string): string =>
  `\\u{${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}}`;

/** Escapes a text for element content and quoted attributes, and shows hidden characters. */
export const escapeHtml = (text: string): string =>
  text.replace(HIDDEN, showHidden).replace(/[&<>"']/g, (character) => ENTITIES[character]!);

type Value = HtmlPiece | string | number | undefined | readonly (HtmlPiece | string | number)[];

const isHtml = (value: Value): value is HtmlPiece => typeof value === 'object' && HTML in value;

function render(value: Value): string {
  if (value === undefined) return '';
  if (isHtml(value)) return value[HTML];
  return typeof value === 'object' ? value.map(render).join('') : escapeHtml(String(value));
}

/** Escapes every value that is not HTML itself. */
export const html = (parts: TemplateStringsArray, ...values: readonly Value[]): HtmlPiece => ({
  [HTML]: parts.reduce((text, part, at) => text + render(values[at - 1]) + part),
});

export const htmlText = (piece: HtmlPiece): string => piece[HTML];
