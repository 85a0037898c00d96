import { TurnlogError } from '../lib/errors/turnlogError.ts';
import { LIMITS } from '../limits.ts';

const refused = (message: string): TurnlogError =>
  new TurnlogError('invalid_request', `The request body is not valid: "url" ${message}.`, {
    details: { url: { message: `"url" ${message}.`, path: '/url' } },
  });

/**
 * Validates and normalizes an address. Addresses without TLS are accepted only where private
 * addresses are. Each delivery checks whether the resolved address is private. Errors:
 * `invalid_request`.
 */
export function requireWebhookUrl(url: string, allowPrivate: boolean): string {
  if (!URL.canParse(url)) throw refused('must be an absolute URL');
  const { protocol, username, password, hash, href } = new URL(url);
  const allowed = allowPrivate ? ['https:', 'http:'] : ['https:'];
  if (!allowed.includes(protocol)) throw refused(`must begin with ${allowed.join('// or ')}//`);
  if (username + password !== '') throw refused('must not carry a user or a password');
  if (hash !== '') throw refused('must not have a fragment');
  if (href.length > LIMITS.web.urlChars)
    throw refused(`must not be longer than ${LIMITS.web.urlChars} characters once it is encoded`);
  return href;
}
