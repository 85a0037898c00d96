interface SentRequest {
  method: string;
  url: string;
  body: string | undefined;
  headers: Readonly<Record<string, string>>;
}

/** A request that the console made. */
interface LoggedRequest extends SentRequest {
  id: number;
  status: number | undefined;
  ms: number | undefined;
  at: Date;
}

const MOST_REQUESTS = 50;
let requests: readonly LoggedRequest[] = [];
let lastId = 0;
const listeners = new Set<() => void>();

function replace(next: readonly LoggedRequest[]): void {
  requests = next;
  for (const listener of listeners) listener();
}

/** The latest requests, newest first. */
export const getRequestLog = (): readonly LoggedRequest[] => requests;

/** Calls `listener` at each change of the log; returns how to stop that. */
export function onRequestLogChange(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Notes a request, and returns how to note its end with the status of its response. */
export function logRequest(request: SentRequest): (status: number | undefined) => void {
  const entry = { ...request, id: (lastId += 1), status: undefined, ms: undefined, at: new Date() };
  const start = performance.now();
  replace([entry, ...requests].slice(0, MOST_REQUESTS));
  return (status) =>
    replace(
      requests.map((each) =>
        each.id === entry.id ? { ...each, status, ms: performance.now() - start } : each,
      ),
    );
}

const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** The request as a curl command, which takes the key from the environment. */
export function toCurl({ method, url, body, headers }: SentRequest): string {
  const lines = [`curl ${method === 'GET' ? '' : `-X ${method} `}${quote(url)}`];
  lines.push(`-H "x-api-key: $TURNLOG_API_KEY"`);
  for (const [name, value] of Object.entries(headers))
    lines.push(`-H ${quote(`${name}: ${value}`)}`);
  if (body !== undefined) lines.push(`--data ${quote(body)}`);
  return lines.join(' \\\n  ');
}
