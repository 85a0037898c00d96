import { infiniteQueryOptions } from '@tanstack/react-query';
import type { EventSourceMessage } from 'eventsource-parser/stream';
import createClient from 'openapi-fetch';
import { ApiError, readApiError } from './apiError.ts';
import { getApiKey, setApiKey } from './apiKey.ts';
import { eventsIn } from './eventStream.ts';
import { logRequest } from './requestLog.ts';
import type { components, paths } from './schema.gen';

/** A schema of the API's OpenAPI document. */
export type Schema<Name extends keyof components['schemas']> = components['schemas'][Name];

const HIDDEN = new Set(['x-api-key', 'accept']);

/** `fetch` with the API key. Throws an `ApiError` unless the response is a success. */
export async function apiFetch(request: Request): Promise<Response> {
  const key = getApiKey();
  if (key !== undefined) request.headers.set('x-api-key', key);
  const body = request.body ? await request.clone().text() : undefined;
  const headers = Object.fromEntries([...request.headers].filter(([name]) => !HIDDEN.has(name)));
  const logEnd = logRequest({ method: request.method, url: request.url, body, headers });
  let response: Response;
  try {
    response = await fetch(request);
  } catch (error) {
    logEnd(undefined);
    if (request.signal.aborted) throw error;
    const message = 'The service can’t be reached. Check that it is running, then try again.';
    throw new ApiError(0, { error: message, code: 'unreachable', retry: 'same_key' }, error);
  }
  logEnd(response.status);
  if (response.ok || response.status === 304) return response;
  const error = await readApiError(response);
  if (error.status === 401) setApiKey(undefined);
  throw error;
}

/** The typed client of the API. Failures are thrown as `ApiError`, so `data` is always there. */
export const api = createClient<paths>({ baseUrl: location.origin, fetch: apiFetch });

/** The `data` of an answer of `api`. */
export async function dataOf<Data>(
  answer: Promise<{ data?: { data: Data } | undefined }>,
): Promise<Data> {
  return (await answer).data!.data;
}

/** A page of a list, and the cursor of the next page if there is one. */
export interface ListPage<Row> {
  rows: Row[];
  next: string | undefined;
}

const cursorOf = (response: Response): string | undefined => {
  const link = /<([^>]+)>;\s*rel="next"/.exec(response.headers.get('link') ?? '');
  return link
    ? (new URL(link[1]!, location.origin).searchParams.get('after') ?? undefined)
    : undefined;
};

/** One page of a list operation of `api`. */
export async function pageOf<Row>(
  answer: Promise<{ data?: { data: Row[] } | undefined; response: Response }>,
): Promise<ListPage<Row>> {
  const { data, response } = await answer;
  return { rows: data!.data, next: cursorOf(response) };
}

/** The rows of a list, page by page. `read` gets the cursor of a page, empty for the first one. */
export const rowsQuery = <Row>(
  queryKey: readonly unknown[],
  read: (after: { after?: string }) => Promise<ListPage<Row>>,
) =>
  infiniteQueryOptions({
    queryKey,
    queryFn: ({ pageParam: after }) => read(after ? { after } : {}),
    initialPageParam: '',
    getNextPageParam: ({ next }) => next,
    select: ({ pages }) => pages.flatMap(({ rows }) => rows),
  });

/** The server-sent events of a response, until it ends or `signal` aborts. */
export async function* readEvents(
  path: string,
  init: RequestInit,
): AsyncGenerator<EventSourceMessage> {
  const request = new Request(new URL(path, location.origin), init);
  request.headers.set('accept', 'text/event-stream');
  yield* eventsIn(await apiFetch(request));
}
