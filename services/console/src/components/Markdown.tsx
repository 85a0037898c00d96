import DOMPurify from 'dompurify';
import { Marked } from 'marked';
import { memo, useMemo } from 'react';

const ESCAPES: Readonly<Record<string, string>> = { '<': '&lt;', '>': '&gt;', '&': '&amp;' };

// HTML in the Markdown is shown as the text that it is, also since the browser reports its inline
// scripts and styles as violations of the content security policy even while it is sanitised.
const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: { html: ({ text }) => text.replaceAll(/[<>&]/g, (character) => ESCAPES[character]!) },
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

/** Sanitised HTML of a Markdown text, whoever wrote it. */
export const renderMarkdown = (text: string): string =>
  purifier.sanitize(marked.parse(text, { async: false }), {
    ALLOWED_TAGS,
    ALLOWED_ATTR: ['href', 'target', 'rel', 'start'],
    ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  });

/** A text of a person, an agent or a tool, as Markdown. */
export const Markdown = memo(({ text }: { text: string }) => {
  const html = useMemo(() => ({ __html: renderMarkdown(text) }), [text]);
  return <div className="markdown" dangerouslySetInnerHTML={html} />;
});
