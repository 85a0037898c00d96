import { expect, test } from '@jest/globals';
import { escapeHtml, html, htmlSlices, htmlText } from '../../../../shared/lib/html.ts';
import { SLICE_CHARS } from '../../../../shared/lib/slices.ts';

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

test.each(['\u00ad', '<', '😀', '\ud83d', 'a😀'])(
  'escapes a long text of %j in slices',
  (repeated) => {
    const text = repeated.repeat(5 * SLICE_CHARS);
    const slices = [...htmlSlices(html`<p>${text}</p>`)];
    expect(slices.join('')).toBe(`<p>${escapeHtml(text)}</p>`);
    // A character is written with at most eight: \u{00AD}.
    for (const { length } of slices) expect(length).toBeLessThanOrEqual(9 * SLICE_CHARS);
  },
);
