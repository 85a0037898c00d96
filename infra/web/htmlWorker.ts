import { parentPort, workerData } from 'node:worker_threads';
import { convert } from 'html-to-text';
import { measureProcessorTime } from '../../shared/lib/time/processorTime.ts';
import { RUN_LIMITS } from '../../shared/runs/limits.ts';
import type { Html } from './htmlThread.ts';

/** Deeper elements are left out, because each level takes stack. */
const DEEPEST = 200;
const IGNORED = ['img', 'script', 'style', 'noscript', 'svg', 'template'];

const { text, url } = workerData as Html;

/** Resolves a link as a browser does. */
const absolute = (href: string): string => URL.parse(href, url)?.href ?? href;

const textOf = (): string =>
  convert(text, {
    wordwrap: false,
    baseElements: { selectors: ['title', 'body'], orderBy: 'selectors' },
    limits: { maxDepth: DEEPEST, ellipsis: '…' },
    selectors: [
      { selector: 'title', format: 'block' },
      { selector: 'a', options: { pathRewrite: absolute, hideLinkHrefIfSameAsText: true } },
      ...['h1', 'h2', 'h3', 'h4', 'h5', 'h6'].map((selector) => ({
        selector,
        options: { uppercase: false },
      })),
      ...IGNORED.map((selector) => ({ selector, format: 'skip' })),
    ],
    // Links may be many times as long as the page that has them.
  }).slice(0, RUN_LIMITS.web.pageBytes);

parentPort!.postMessage(measureProcessorTime(textOf));
