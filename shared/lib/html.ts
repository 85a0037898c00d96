/** HTML that can't contain a value which was not escaped. */
import { joinToSlices, SLICE_CHARS, textSlices } from './slices.ts';

const HTML = Symbol('HTML');

/** HTML, or a long text that is escaped in slices when it is written. */
type Part = string | { readonly unescaped: string };

/** A piece of HTML. Only this module makes one. */
export interface HtmlPiece {
  readonly [HTML]: readonly Part[];
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

function partsOf(value: Value): readonly Part[] {
  if (value === undefined) return [];
  if (isHtml(value)) return value[HTML];
  if (typeof value === 'object') return value.flatMap(partsOf);
  const text = String(value);
  return [text.length > SLICE_CHARS ? { unescaped: text } : escapeHtml(text)];
}

/** Escapes every value that is not HTML itself. */
export const html = (strings: TemplateStringsArray, ...values: readonly Value[]): HtmlPiece => ({
  [HTML]: strings.flatMap((string, at) => [...partsOf(values[at - 1]), string]),
});

function* escapedParts(parts: readonly Part[]): Generator<string> {
  for (const part of parts)
    if (typeof part === 'string') yield part;
    else for (const slice of textSlices(part.unescaped)) yield escapeHtml(slice);
}

/** The text of a piece in slices, since escaping a long text takes a tenth of a second. */
export const htmlSlices = (piece: HtmlPiece): Generator<string> =>
  joinToSlices(escapedParts(piece[HTML]));

/** The text of a piece without long values. */
export const htmlText = (piece: HtmlPiece): string => [...htmlSlices(piece)].join('');
