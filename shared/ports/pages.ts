import type { ToolCaller } from './toolGroup.ts';

/**
 * Reads the text of a web page whose address is untrusted. Errors: `web_refused`, `web_failed`,
 * `rate_limited`, `overloaded`, with messages that are safe to show; the abort reason.
 */
export type ReadPage = (url: string, calling: ToolCaller) => Promise<string>;
