import { createFairLanes } from '../../shared/lib/concurrency/fairLanes.ts';
import { createFairSemaphore } from '../../shared/lib/concurrency/fairSemaphore.ts';
import { LIMITS } from '../../shared/limits.ts';
import type { ReadPage } from '../../shared/ports/pages.ts';
import { webFailedError } from './failures.ts';
import { createGuardedFetch, type GuardedAnswer, type GuardOptions } from './guardedFetch.ts';
import { textOfHtml } from './htmlThread.ts';

const { pages, pagesOfAccount, pageWaitMs, pageBytes, pageMs, redirects } = LIMITS.web;
const { conversions, slowHtmlMs } = LIMITS.web;

const HTML = new Set(['text/html', 'application/xhtml+xml']);
const PLAIN = /^(text\/[\w.+-]+|application\/(json|xml|yaml|x-ndjson|[\w.-]+\+(json|xml)))$/;
const CHARSET = /;\s*charset\s*=\s*"?([\w.:-]{1,40})/i;
/** As HTML says it in its first bytes, where the header does not. */
const META_CHARSET = /<meta[^>]{0,200}charset\s*=\s*["']?([\w.:-]{1,40})/i;

function decode({ body, headers }: GuardedAnswer, isHtml: boolean): string {
  const start = isHtml ? body.toString('latin1', 0, 1_024) : '';
  const label = (CHARSET.exec(headers['content-type'] ?? '') ?? META_CHARSET.exec(start))?.[1];
  try {
    return new TextDecoder(label ?? 'utf-8').decode(body);
  } catch {
    return new TextDecoder().decode(body);
  }
}

const typeOf = ({ headers }: GuardedAnswer): string =>
  (headers['content-type'] ?? '').split(';')[0]!.trim().toLowerCase();

/** Notes for the model before a text that differs from the page it requested. */
const noteOn = (url: string, { url: final, truncated }: GuardedAnswer): string =>
  [
    ...(final === new URL(url).href ? [] : [`(From ${final})`]),
    ...(truncated ? [`(Only the first ${pageBytes} bytes were read.)`] : []),
  ]
    .map((line) => `${line}\n`)
    .join('');

/**
 * Reads pages of the web as text: HTML, and what is text anyway. Accounts take turns, and one has
 * half of the places at the most.
 */
export function createPageReader(
  options: Pick<GuardOptions, 'allowPrivate'> & Partial<GuardOptions>,
): ReadPage {
  const fetchPage = createGuardedFetch({ redirects, bytes: pageBytes, ms: pageMs, ...options });
  const semaphore = createFairSemaphore(
    'web_pages',
    { permits: pages, bytes: Infinity },
    { permits: pagesOfAccount, bytes: Infinity },
  );
  const threads = createFairLanes('page_conversions', {
    permits: conversions,
    slowMs: slowHtmlMs,
    slowForMs: LIMITS.slowWork.slowForMs,
  });

  return async (url, { account_id, signal }) => {
    using _permit = await semaphore.acquire({ account_id }, { waitMs: pageWaitMs, signal });
    const headers = {
      accept: 'text/html, text/*, application/json;q=0.9',
      'user-agent': 'turnlog',
    };
    const answer = await fetchPage({ url, method: 'GET', headers }, signal);
    if (answer.status < 200 || answer.status > 299)
      throw webFailedError(`answers with status ${answer.status}`);
    const type = typeOf(answer);
    const isHtml = HTML.has(type);
    if (!isHtml && !PLAIN.test(type))
      throw webFailedError('answers with something that is no text');
    const text = decode(answer, isHtml);
    const note = noteOn(url, answer);
    if (!isHtml) return note + text;
    const thread = await threads.acquire(account_id, { waitMs: pageWaitMs, signal });
    const began = performance.now();
    let cpuMs: number | undefined;
    try {
      const converted = await textOfHtml({ text, url: answer.url }, signal);
      cpuMs = converted.cpuMs;
      return note + converted.answer;
    } finally {
      thread.release(cpuMs ?? performance.now() - began);
    }
  };
}
