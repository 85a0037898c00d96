import { createHash } from 'node:crypto';

/** The style sheet of a report, which also prints. It refers to nothing. */
export const STYLE = `
:root { color-scheme: light; }
body { font: 15px/1.5 Georgia, "Times New Roman", serif; color: #1a1a1a; background: #fff; margin: 2rem auto; max-width: 50rem; padding: 0 1.5rem; }
h1 { font-size: 1.7rem; margin: 0 0 .25rem; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .75rem; border-bottom: 2px solid #1a1a1a; }
h3 { font-size: 1rem; margin: 0 0 .4rem; }
h4 { font: 600 .8rem/1.4 system-ui, sans-serif; text-transform: uppercase; letter-spacing: .04em; color: #555; margin: .7rem 0 .2rem; }
p { margin: .4rem 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; margin: .5rem 0; }
dt { color: #555; }
dd { margin: 0; overflow-wrap: anywhere; }
pre, code { font: 13px/1.45 ui-monospace, Menlo, Consolas, monospace; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #f6f6f4; border: 1px solid #ddd; padding: .6rem .8rem; margin: .2rem 0; }
code { overflow-wrap: anywhere; }
section.event { border-left: 3px solid #b9b9b3; padding: .1rem 0 .1rem 1rem; margin: 1.2rem 0; }
section.event footer { font: 12px/1.5 system-ui, sans-serif; color: #555; margin-top: .5rem; }
.mark { font-style: italic; color: #8a1c1c; }
.lead { color: #555; margin-top: 0; }
@media print {
  body { margin: 0; max-width: none; font-size: 11pt; }
  h2, h3, h4 { break-after: avoid; }
  section.event footer, dl { break-inside: avoid; }
}
`;

/** Allows this style sheet and nothing else: no script, no image, no request. */
export const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
].join('; ');
