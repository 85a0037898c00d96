/**
 * An example host of `<turnlog-chat>`: it serves a page and requests chat tokens for its visitors, so
 * that its API key stays here. Run it: TURNLOG_API_KEY=… AGENT_ID=… npm run example:chat
 */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

const {
  TURNLOG_URL = 'http://localhost:3000',
  TURNLOG_API_KEY,
  AGENT_ID,
  PORT = '4000',
  TOKEN_SECONDS = '900',
} = process.env;
if (TURNLOG_API_KEY === undefined || AGENT_ID === undefined) {
  console.error('Set TURNLOG_API_KEY to a key with the scopes agents:run and sessions:read,');
  console.error('and AGENT_ID to the agent that the page is for.');
  process.exit(1);
}

const turnlog = new URL(TURNLOG_URL).origin;
/** No inline script or style: the component needs none. */
const POLICY = [
  "default-src 'none'",
  `script-src 'self' ${turnlog}`,
  "style-src 'self'",
  'img-src data:',
  `connect-src 'self' ${turnlog}`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types dompurify',
].join('; ');

const read = (name: string): string => readFileSync(new URL(name, import.meta.url), 'utf8');
const FILES: Readonly<Record<string, { type: string; text: string }>> = {
  '/': { type: 'text/html', text: read('page.html').replaceAll('{turnlog}', turnlog) },
  '/page.js': { type: 'text/javascript', text: read('page.js') },
  '/page.css': { type: 'text/css', text: read('page.css') },
};

/**
 * The id of the visitor, from a cookie that only this server can read. A site with a sign-in uses the
 * id of the signed-in user instead, and refuses visitors without one.
 */
function visitorOf(request: IncomingMessage, response: ServerResponse): string {
  const known = /(?:^|; )visitor=([\w-]{22})(?:;|$)/.exec(request.headers.cookie ?? '')?.[1];
  if (known !== undefined) return known;
  const visitor = randomBytes(16).toString('base64url');
  const attributes = 'HttpOnly; SameSite=Lax; Path=/; Max-Age=2592000';
  response.setHeader('set-cookie', `visitor=${visitor}; ${attributes}`);
  return visitor;
}

/** Requests a token for the visitor, and passes on the answer of Turnlog. */
async function sendToken(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const reply = await fetch(`${turnlog}/v1/agents/${AGENT_ID}/chat-tokens`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TURNLOG_API_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      user: visitorOf(request, response),
      expires_in_seconds: Number(TOKEN_SECONDS),
    }),
    signal: AbortSignal.timeout(10_000),
  });
  const text = await reply.text();
  if (!reply.ok) console.error(`Turnlog issued no token: ${text}`);
  response.writeHead(reply.ok ? 200 : 502, {
    'content-type': 'application/json',
    'cache-control': 'no-store',
  });
  response.end(reply.ok ? text : '{"error":"There is no token now. Try again later."}');
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method, url = '/' } = request;
  if (method === 'POST' && url === '/chat-token') return sendToken(request, response);
  const file = method === 'GET' ? FILES[url] : undefined;
  if (!file) {
    response.writeHead(404, { 'content-type': 'text/plain' }).end('Not found');
    return;
  }
  visitorOf(request, response);
  response.writeHead(200, {
    'content-type': `${file.type}; charset=utf-8`,
    'content-security-policy': POLICY,
    'x-content-type-options': 'nosniff',
  });
  response.end(file.text);
}

const server = createServer((request, response) => {
  answer(request, response).catch((error: unknown) => {
    console.error(String(error));
    if (!response.headersSent) response.writeHead(502);
    response.end();
  });
});
server.listen(Number(PORT), 'localhost', () => {
  const page = `http://localhost:${(server.address() as AddressInfo).port}`;
  console.log(`The page is at ${page}. Start Turnlog with CORS_ORIGINS=${page}.`);
});
