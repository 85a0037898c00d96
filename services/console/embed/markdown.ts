import DOMPurify from 'dompurify';
import { Marked, type Token, type TokensList } from 'marked';

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
};
const escapeText = (text: string): string => text.replace(/[&<>"]/g, (found) => ENTITIES[found]!);

/** HTML in a text is shown as text, and an image as a link to it. */
const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    html: ({ text, block }) => (block ? `<p>${escapeText(text)}</p>` : escapeText(text)),
    image: ({ href, text }) => `<a href="${escapeText(href)}">${escapeText(text || href)}</a>`,
  },
});
const purifier = DOMPurify(window);
// Links open elsewhere and learn nothing. Nothing loads by itself: the address of an image could tell
// another host what the chat is about.
purifier.addHook('afterSanitizeAttributes', (node) => {
  if (node.tagName !== 'A') return;
  node.setAttribute('target', '_blank');
  node.setAttribute('rel', 'noopener noreferrer nofollow');
});
const TAGS =
  'a p br hr b strong i em del s code pre blockquote ul ol li h1 h2 h3 h4 h5 h6 table thead tbody tr th td';

const sanitize = (html: string): DocumentFragment =>
  purifier.sanitize(html, {
    ALLOWED_TAGS: TAGS.split(' '),
    ALLOWED_ATTR: ['href', 'target', 'rel', 'start'],
    ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
    RETURN_DOM_FRAGMENT: true,
  });

/** Code blocks and tables scroll sideways, so the keyboard must reach them. */
function makeReachable(fragment: DocumentFragment): void {
  for (const wide of fragment.querySelectorAll('pre, table')) {
    wide.setAttribute('tabindex', '0');
    if (wide.tagName === 'PRE') wide.setAttribute('role', 'group');
    if (wide.tagName === 'PRE') wide.setAttribute('aria-label', 'Code');
  }
}

/**
 * Shows a text as sanitised Markdown in `parent`. When the text grows, blocks that have not changed
 * keep their elements, so that a selection in them survives and nothing flickers.
 */
export function createMarkdownView(parent: HTMLElement): (text: string) => void {
  let shown: { raw: string; nodes: ChildNode[] }[] = [];
  return (text) => {
    const tokens: TokensList = marked.lexer(text);
    const { links } = tokens;
    const firstChange = tokens.findIndex(({ raw }, at) => shown[at]?.raw !== raw);
    const kept = firstChange === -1 ? tokens.length : firstChange;
    for (const { nodes } of shown.splice(kept)) for (const node of nodes) node.remove();
    for (const token of tokens.slice(kept)) {
      const block = Object.assign([token] as Token[], { links });
      const fragment = sanitize(marked.parser(block));
      makeReachable(fragment);
      const nodes = [...fragment.childNodes];
      parent.append(...nodes);
      shown.push({ raw: token.raw, nodes });
    }
  };
}
