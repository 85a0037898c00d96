/** Each text has a contrast of at least 4.5:1 on its background. */
const STYLES = `
:host {
  --bg: var(--turnlog-background, light-dark(#ffffff, #0f0f14)); --text: var(--turnlog-text, light-dark(#18181b, #f4f4f6));
  --muted: var(--turnlog-muted, light-dark(#5b5b66, #a5a5b2)); --soft: var(--turnlog-surface, light-dark(#f4f4f5, #1d1d24));
  --line: var(--turnlog-border, light-dark(#e4e4e7, #2b2b34)); --field: light-dark(#8b8b96, #70707e);
  --accent: var(--turnlog-accent, light-dark(#4f46e5, #a5b4fc)); --on-accent: var(--turnlog-on-accent, light-dark(#ffffff, #14142b));
  --error: light-dark(#b91c1c, #fca5a5); color-scheme: light dark;
  display: block; block-size: 36rem; max-block-size: 100dvh;
  font: 1rem/1.55 var(--turnlog-font, system-ui, sans-serif); color: var(--text);
}
:host([theme='light']) { color-scheme: light; } :host([theme='dark']) { color-scheme: dark; }
*, *::before { box-sizing: border-box; } :host([hidden]), [hidden] { display: none !important; }
.hidden { position: absolute; inline-size: 1px; block-size: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
section { display: flex; flex-direction: column; block-size: 100%; overflow: hidden; background: var(--bg); border: 1px solid var(--line); border-radius: var(--turnlog-radius, 0.875rem); }
header { display: flex; align-items: center; justify-content: space-between; gap: 1rem; padding: 0.625rem 0.75rem 0.625rem 1rem; border-block-end: 1px solid var(--line); }
h2 { margin: 0; font-size: 1rem; font-weight: 600; overflow-wrap: anywhere; }
button { min-block-size: 2.25rem; padding: 0 0.875rem; font: inherit; font-size: 0.875rem; font-weight: 500; color: var(--text); background: var(--bg); border: 1px solid var(--line); border-radius: 0.5rem; cursor: pointer; } button:hover { background: var(--soft); }
/* The element decides itself whether the log follows its end. */
.body { position: relative; display: flex; flex: 1; min-block-size: 0; }
.log { flex: 1; overflow: hidden auto; overflow-anchor: none; overscroll-behavior: contain; padding: 1rem 1rem 1.25rem; } .log:focus-visible { outline-offset: -2px; }
.latest { position: absolute; inset-block-end: 0.75rem; inset-inline-start: 50%; translate: -50% 0; box-shadow: 0 2px 8px rgb(0 0 0 / 15%); white-space: nowrap; }
.log > ol { display: flex; flex-direction: column; gap: 1rem; margin: 0; padding: 0; list-style: none; }
.log > ol > li { max-inline-size: 100%; overflow-wrap: anywhere; }
.log > ol > .user { align-self: flex-end; max-inline-size: 85%; padding: 0.5rem 0.875rem; background: var(--soft); border-radius: 1rem 1rem 0.25rem; }
.user p { margin: 0; white-space: pre-wrap; }
.agent { position: relative; align-self: stretch; min-block-size: 1.55rem; }
.markdown > :first-child { margin-block-start: 0; } .markdown > :last-child { margin-block-end: 0; }
.markdown + .markdown, .markdown + .tool, .tool + .markdown { margin-block-start: 0.75rem; }
.markdown :is(p, ul, ol, pre, blockquote, table) { margin-block: 0.75rem; }
.markdown :is(h1, h2, h3, h4, h5, h6) { margin-block: 1.25rem 0.5rem; font-size: 1.0625rem; } .markdown :is(ul, ol) { padding-inline-start: 1.5rem; }
.markdown blockquote { margin-inline: 0; padding-inline-start: 0.875rem; border-inline-start: 3px solid var(--line); color: var(--muted); }
.markdown hr { border: 0; border-block-start: 1px solid var(--line); margin-block: 1rem; }
a { color: var(--accent); text-underline-offset: 2px; }
code, pre { font-family: ui-monospace, 'SF Mono', Menlo, Consolas, monospace; font-size: 0.875em; }
code { padding: 0.125em 0.3em; background: var(--soft); border-radius: 0.25rem; }
pre { max-inline-size: 100%; padding: 0.75rem; overflow-x: auto; background: var(--soft); border-radius: 0.5rem; overflow-wrap: normal; } pre code { padding: 0; background: none; font-size: 1em; }
table { display: block; max-inline-size: 100%; overflow-x: auto; border-collapse: collapse; }
th, td { padding: 0.375rem 0.75rem; border: 1px solid var(--line); text-align: start; } th { background: var(--soft); font-weight: 600; }
.tool { border: 1px solid var(--line); border-radius: 0.5rem; font-size: 0.875rem; } .tool + .tool { margin-block-start: 0.5rem; }
.tool summary { padding: 0.4375rem 0.75rem; color: var(--muted); cursor: pointer; } .tool.failed summary { color: var(--error); }
.tool dl { margin: 0; padding: 0 0.75rem 0.75rem; }
.tool dt { color: var(--muted); } .tool dd { margin: 0; } .tool dd + dt { margin-block-start: 0.5rem; }
.tool pre { max-block-size: 12rem; margin: 0.25rem 0 0; overflow-y: auto; white-space: pre-wrap; overflow-wrap: anywhere; }
/* Takes no space, so that the end of an answer moves nothing. */
.pending { position: absolute; inset-block-end: -0.875rem; margin: 0; }
div:empty + .pending { inset-block-end: 0.5rem; }
.pending::before { content: ''; display: block; inline-size: 0.5rem; block-size: 0.5rem; border-radius: 50%; background: var(--accent); animation: pulse 1.2s ease-in-out infinite; }
@keyframes pulse { 50% { opacity: 0.25; } } @media (prefers-reduced-motion: reduce) { .pending::before { animation: none; } }
.note { color: var(--muted); font-size: 0.9375rem; } .note:empty { display: none; }
.note p { margin: 0 0 0.5rem; } .agent > .note { margin-block-start: 0.5rem; }
ol:not(:empty) + .note { margin-block-start: 1.25rem; }
form { display: flex; align-items: flex-end; gap: 0.5rem; padding: 0.75rem; border-block-start: 1px solid var(--line); }
textarea { flex: 1; min-inline-size: 0; min-block-size: 2.5rem; max-block-size: 10rem; padding: 0.4375rem 0.75rem; font: inherit; color: inherit; background: var(--bg); border: 1px solid var(--field); border-radius: 0.625rem; resize: none; field-sizing: content; }
textarea:focus-visible { outline-offset: -1px; border-color: transparent; } textarea::placeholder { color: var(--muted); opacity: 1; }
.send, .stop { min-block-size: 2.5rem; min-inline-size: 4.5rem; } .send { color: var(--on-accent); background: var(--accent); border-color: transparent; }
.send:hover { background: var(--accent); filter: brightness(1.1); }
`;

/** One sheet for all elements. A policy that forbids inline styles allows it. */
export const styleSheet = new CSSStyleSheet();
styleSheet.replaceSync(STYLES);
