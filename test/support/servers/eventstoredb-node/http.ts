import type http from 'node:http';
import { text } from 'node:stream/consumers';
import { isAdmin, type Access } from './access.ts';
import type { NewUser } from './users.ts';

const RESET = /^\/users\/([^/]+)\/command\/reset-password$/;

/** The status of an answer to an administrator. */
function administer({ users }: Access, path: string, body: string): number {
  if (!users) return 404;
  if (path === '/users/' || path === '/users')
    return users.create(JSON.parse(body) as NewUser) ? 201 : 409;
  const name = RESET.exec(path)?.[1];
  if (name === undefined) return 404;
  const { newPassword } = JSON.parse(body) as { newPassword: string };
  return users.resetPassword(decodeURIComponent(name), newPassword) ? 200 : 404;
}

async function statusOf(access: Access, request: http.IncomingMessage): Promise<number> {
  const { pathname } = new URL(request.url ?? '/', 'http://node');
  if (pathname === '/health/live') return 204;
  if (request.method !== 'POST') return 404;
  const caller = access.caller(request.headers.authorization);
  if (caller === undefined || !isAdmin(caller)) return 401;
  return administer(access, pathname, await text(request));
}

/** HTTP/1.1 on the port of gRPC: that the node lives, and what an administrator does with users. */
export const handleHttp =
  (access: Access): http.RequestListener =>
  (request, response) => {
    statusOf(access, request).then(
      (status) => response.writeHead(status).end(),
      () => response.writeHead(400).end(),
    );
  };
