import type { Calling } from './toolGroup.ts';

/**
 * The text of a page on the web, which somebody else named. Errors: `web_refused`, `web_failed`,
 * `rate_limited`, `overloaded`, whose sentences are safe to show; the signal's reason.
 */
export type ReadPage = (url: string, calling: Calling) => Promise<string>;
