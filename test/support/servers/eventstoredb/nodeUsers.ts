import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { CERTIFICATE_FILE } from '../tls/files.ts';

/** A request to the HTTP API of a node with TLS, by its administrator. Resolves with the status. */
function administer(port: number, path: string, body: object, auth: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const options = {
      host: '127.0.0.1',
      port,
      path,
      method: 'POST',
      auth,
      ca: readFileSync(CERTIFICATE_FILE),
      headers: { 'content-type': 'application/json' },
    };
    request(options, (response) => resolve(response.resume().statusCode ?? 0))
      .on('error', reject)
      .end(JSON.stringify(body));
  });
}

/** Creates a user without groups. Resolves with the status. */
export const createUser = (port: number, loginName: string, password: string): Promise<number> =>
  administer(
    port,
    '/users/',
    { loginName, fullName: loginName, groups: [], password },
    'admin:changeit',
  );

/** Changes the password of `admin`. Resolves with the status. */
export const changeAdminPassword = (
  port: number,
  { from, to }: { from: string; to: string },
): Promise<number> =>
  administer(port, '/users/admin/command/reset-password', { newPassword: to }, `admin:${from}`);
