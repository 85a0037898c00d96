import { expect, test } from '@jest/globals';
import { escapeHtml, html, htmlText } from '../../../../shared/lib/html.ts';

test('escapes what ends an element, an attribute or a reference', () => {
  expect(escapeHtml(`<a href="x" title='y'>&amp;</a>`)).toBe(
    '&lt;a href=&quot;x&quot; title=&#39;y&#39;&gt;&amp;amp;&lt;/a&gt;',
  );
});

test('shows characters that are invisible or change the order of others, and keeps lines and emoji', () => {
  expect(escapeHtml('a\u202Egnp.exe\u0000\u200B\u2066\uD800\u001B[2J')).toBe(
    'a\\u{202E}gnp.exe\\u{0000}\\u{200B}\\u{2066}\\u{D800}\\u{001B}[2J',
  );
  expect(escapeHtml('one\n\ttwo 👩‍🚀 שלום')).toBe('one\n\ttwo 👩‍🚀 שלום');
});

test('takes only its own pieces as they are', () => {
  const piece = html`<b>${'<i>'}</b>`;
  expect(htmlText(html`<p>${piece}${[piece, 'a & b', 3]}${undefined}</p>`)).toBe(
    '<p><b>&lt;i&gt;</b><b>&lt;i&gt;</b>a &amp; b3</p>',
  );
  const forged = JSON.parse('{"html":"<script>"}') as string;
  expect(() => htmlText(html`${forged}`)).toThrow();
});
