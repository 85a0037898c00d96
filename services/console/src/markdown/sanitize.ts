import DOMPurify from 'dompurify';
import { Marked, Tokenizer, type Tokens } from 'marked';

/** For the content of an element. marked would leave the character references of a text as they are. */
const escapeText = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

/** Lists and quotations that are nested deeper are shown as text. */
const MAX_NESTING = 50;
/** The time that marked needs for a paragraph grows with the square of its length. */
const MAX_PARAGRAPH_CHARACTERS = 10_000;
/** It grows with the cube of the number of these characters in a paragraph. */
const EMPHASIS = /[*_]/;
const MAX_EMPHASIS = 200;

/** Whether the rest of a paragraph is shown as it was written, because it would take too long. */
const isCostly = (rest: string): boolean =>
  rest.length > MAX_PARAGRAPH_CHARACTERS ||
  (EMPHASIS.test(rest[0]!) && rest.split(EMPHASIS).length > MAX_EMPHASIS);

let nesting = 0;
/** Bounds the recursion of marked, which would exceed the stack. */
function nested<Token>(tokenize: () => Token): Token | undefined {
  if (nesting >= MAX_NESTING) return undefined;
  nesting += 1;
  try {
    return tokenize();
  } finally {
    nesting -= 1;
  }
}

/**
 * HTML in Markdown is shown as the text that it is, also since the browser reports its inline scripts
 * and styles as violations of the content security policy even while it is sanitised. Of an image
 * its description is shown: loading it would tell its host what the text is about.
 */
export const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    html: ({ text, block }) => (block ? `<p>${escapeText(text)}</p>` : escapeText(text)),
    image: ({ href, text }) => escapeText(text || href),
  },
  // `false` stands for the method of marked itself.
  tokenizer: {
    blockquote(src): Tokens.Blockquote | undefined {
      return nested(() => Tokenizer.prototype.blockquote.call(this, src));
    },
    list(src): Tokens.List | undefined {
      return nested(() => Tokenizer.prototype.list.call(this, src));
    },
    // The first rule that marked applies to what is left of a paragraph.
    escape: (src) => (isCostly(src) ? { type: 'escape', raw: src, text: src } : false),
  },
});
// Links open elsewhere and learn nothing; what loads by itself (images, media) or submits is removed.
const purifier = DOMPurify(window);
purifier.addHook('afterSanitizeAttributes', (node) => {
  if (node.tagName !== 'A') return;
  node.setAttribute('target', '_blank');
  node.setAttribute('rel', 'noopener noreferrer nofollow');
});
const ALLOWED_TAGS =
  'a p br hr b strong i em del s code pre blockquote ul ol li h1 h2 h3 h4 h5 h6 table thead tbody tr th td'.split(
    ' ',
  );

/** The sanitised elements of the HTML that `marked` made from any text. */
export const sanitize = (html: string): DocumentFragment =>
  purifier.sanitize(html, {
    ALLOWED_TAGS,
    ALLOWED_ATTR: ['href', 'target', 'rel', 'start'],
    ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
    RETURN_DOM_FRAGMENT: true,
  });
