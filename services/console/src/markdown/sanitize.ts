import DOMPurify from 'dompurify';
import { Marked } from 'marked';

const ESCAPES: Readonly<Record<string, string>> = {
  '<': '&lt;',
  '>': '&gt;',
  '&': '&amp;',
  '"': '&quot;',
};
const escapeText = (text: string): string =>
  text.replaceAll(/[<>&"]/g, (character) => ESCAPES[character]!);

/**
 * HTML in Markdown is shown as the text that it is, also since the browser reports its inline scripts
 * and styles as violations of the content security policy even while it is sanitised. An image becomes
 * a link: loading it would tell its host what the text is about.
 */
export const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    html: ({ text, block }) => (block ? `<p>${escapeText(text)}</p>` : escapeText(text)),
    image: ({ href, text }) => `<a href="${escapeText(href)}">${escapeText(text || href)}</a>`,
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

/** Sanitised elements of the HTML that `marked` has made, whoever wrote the text. */
export const sanitize = (html: string): DocumentFragment =>
  purifier.sanitize(html, {
    ALLOWED_TAGS,
    ALLOWED_ATTR: ['href', 'target', 'rel', 'start'],
    ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
    RETURN_DOM_FRAGMENT: true,
  });
