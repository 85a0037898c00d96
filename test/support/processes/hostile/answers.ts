import type { IncomingHttpHeaders } from 'node:http';
import { apiFeatures } from '../../../../services/api/features.ts';

/** An answer that came to its end. */
export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  /** The first bytes of the body, at most `HEAD_BYTES`; all of it where it is shorter. */
  head: string;
  /** Its last bytes. */
  tail: string;
  bytes: number;
}

/** No failure needs more. */
export const HEAD_BYTES = 65_536;
/** What the parser refuses has a status of its own beside the code `invalid_request`. */
const OF_THE_PARSER = [408, 431];
/** Where the hostile provider quotes its key: nobody may ever see it. */
export const PROVIDER_SECRET = 'sk-hostile-provider-0123456789abcdef';

const statuses = Object.entries(apiFeatures.errorResponses).filter(
  ([, { status }]) => status !== 500,
);
const isDocumented = (code: string, status: number): boolean =>
  OF_THE_PARSER.includes(status) ||
  statuses.some(([known, answer]) => known === code && answer.status === status);

function failureOddity({ status, headers, head, bytes }: Answer): string | undefined {
  if (bytes > HEAD_BYTES) return `a failure of ${bytes} bytes`;
  let body: Record<string, unknown>;
  try {
    body = JSON.parse(head) as Record<string, unknown>;
  } catch {
    return `not JSON: ${head.slice(0, 200)}`;
  }
  const { success, error, code, status: said, request_id } = body;
  if (success !== false || typeof error !== 'string' || said !== status)
    return `not the envelope: ${head.slice(0, 200)}`;
  if (!isDocumented(String(code), status)) return `not documented: ${head.slice(0, 200)}`;
  if (typeof request_id !== 'string' || headers['x-request-id'] !== request_id)
    return `its request id is not that of the header: ${head.slice(0, 200)}`;
  const asksToWait = status === 429 || status === 503;
  if (asksToWait && !/^\d+$/.test(String(headers['retry-after'])))
    return `no Retry-After: ${String(code)}`;
  return undefined;
}

/** Media types of successes that are not JSON. */
const MEDIA = new Set(
  apiFeatures.routes.flatMap(({ media, alternateMedia, events }) =>
    [media, alternateMedia, events && 'text/event-stream'].flatMap((type) =>
      type === undefined ? [] : [type.split(';')[0]!],
    ),
  ),
);

/** What is wrong with an answer: nothing (undefined), or a sentence. */
export function oddityOf(answer: Answer): string | undefined {
  const { status, headers, head, tail } = answer;
  if (head.includes(PROVIDER_SECRET)) return "it shows the provider's key";
  if (status === 304) return undefined;
  const isPacked = headers['content-encoding'] !== undefined;
  const [type = ''] = (headers['content-type'] ?? '').split(';');
  if (type === 'text/event-stream' && status === 200)
    return isPacked || tail.endsWith('\n\n') ? undefined : `the stream ends with: ${tail}`;
  if (MEDIA.has(type) && status === 200) return undefined;
  if (!/^application\/json\b/.test(headers['content-type'] ?? ''))
    return `${status} is ${headers['content-type']}: ${head.slice(0, 200)}`;
  if (status < 200 || status >= 300) {
    const oddity = failureOddity(answer);
    return oddity && `${status}: ${oddity}`;
  }
  const isWhole = /^\s*\{/.test(head) && /\}\s*$/.test(tail);
  return isPacked || isWhole ? undefined : `${status}: not JSON: ${head.slice(0, 200)}`;
}

/** An answer as the table counts it: `200`, `503 overloaded`. */
export function kindOf({ status, head }: Answer): string {
  const code = status >= 400 ? /"code":\s*"(\w+)"/.exec(head)?.[1] : undefined;
  return code === undefined ? String(status) : `${status} ${code}`;
}
