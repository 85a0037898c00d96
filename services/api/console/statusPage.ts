import { createHash } from 'node:crypto';
import { escapeHtml } from '../../../shared/lib/html.ts';
import type { ConsoleState } from '../../../shared/ports/consoleBuild.ts';

const REFRESH_S = 2;
/** Keeps the fragment with the sign-in code. A refresh without a script reloads no page that has one. */
const RELOAD = `setTimeout(() => location.reload(), ${REFRESH_S * 1_000});`;
/** A path that the build printed may be long. */
const MAX_CHARACTERS = 4_000;

const STYLE =
  'body{font:1rem/1.5 system-ui,sans-serif;max-width:44rem;margin:4rem auto;padding:0 1rem}progress{width:100%}pre{white-space:pre-wrap;overflow-wrap:anywhere}';
const hashOf = (text: string): string =>
  `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
const POLICY = `default-src 'none'; script-src ${hashOf(RELOAD)}; style-src ${hashOf(STYLE)}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

const showText = (text: string): string => escapeHtml(text.slice(0, MAX_CHARACTERS));

const inSeconds = (ms: number): string => `${Math.ceil(ms / 1_000)} s`;

function contentOf(state: ConsoleState): { title: string; refreshes: boolean; body: string } {
  switch (state.kind) {
    case 'building':
      return {
        title: 'The console is being built',
        refreshes: true,
        body: `<p>The first start of a release builds the console. This page reloads by itself until it is ready; the API can be used already.</p>
<progress aria-label="Building"></progress>
<p>Elapsed: ${inSeconds(state.elapsedMs)}</p>
<pre>${showText(state.output)}</pre>`,
      };
    case 'failed': {
      const when = state.retryMs > 0 ? `in ${inSeconds(state.retryMs)} or later` : 'now';
      return {
        title: 'The console could not be built',
        refreshes: false,
        body: `<pre>${showText(state.reason)}</pre>
<p>To try again, reload this page ${when}, restart the service, or run <code>npm run console:build</code>. The API is not affected.</p>`,
      };
    }
    case 'ready':
      return {
        title: 'The console is missing',
        refreshes: true,
        body: '<p>Its files are being replaced, or were removed. This page reloads by itself. If it stays, restart the service.</p>',
      };
    default:
      return state satisfies never;
  }
}

/** A page about the build of the console, and its content security policy. */
export function renderStatusPage(state: ConsoleState): { html: string; policy: string } {
  const { title, refreshes, body } = contentOf(state);
  const refresh = refreshes
    ? `<noscript><meta http-equiv="refresh" content="${REFRESH_S}"></noscript>\n<script>${RELOAD}</script>\n`
    : '';
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
${refresh}<title>${title} – Turnlog</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>${title}</h1>
${body}
</main>
</body>
</html>
`;
  return { html, policy: POLICY };
}
