import { createHash } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { renderStatusPage } from '../../../../../services/api/console/statusPage.ts';

const HOSTILE = `</pre><script>alert('1')</script>&amp;`;

test('a page about a build shows its state as text, and reloads by itself', () => {
  const { html } = renderStatusPage({ kind: 'building', elapsedMs: 4_200, output: HOSTILE });
  expect(html).toContain('<noscript><meta http-equiv="refresh" content="2"></noscript>');
  expect(html).toContain('Elapsed: 5 s');
  expect(html).toContain('&lt;/pre&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;amp;');
  expect(html.match(/<script/g)).toHaveLength(1);
});

test('a page about a failure says why and what to try, and does not reload by itself', () => {
  const reason = `No space left ${HOSTILE}`;
  const { html } = renderStatusPage({ kind: 'failed', reason, retryMs: 12_000 });
  expect(html).toContain('No space left &lt;/pre&gt;');
  expect(html).toContain('reload this page in 12 s or later');
  expect(html).toContain('npm run console:build');
  expect(html).not.toMatch(/http-equiv="refresh"|<script/);
  expect(renderStatusPage({ kind: 'failed', reason, retryMs: 0 }).html).toContain(
    'reload this page now',
  );
});

test('the policy of the page allows its script, its style and nothing else', () => {
  const { html, policy } = renderStatusPage({ kind: 'building', elapsedMs: 0, output: '' });
  const hashOf = (element: string): string => {
    const [, text] = new RegExp(`<${element}>([^]*)</${element}>`).exec(html)!;
    return `'sha256-${createHash('sha256').update(text!).digest('base64')}'`;
  };
  expect(policy).toBe(
    `default-src 'none'; script-src ${hashOf('script')}; style-src ${hashOf('style')}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  );
});
