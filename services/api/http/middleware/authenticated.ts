import type { Context } from 'koa';
import type { Actor } from '../../../../shared/commandHandling/context.ts';
import type { Scope } from '../../../../shared/accounts/events.ts';
import { TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';
import { identify, unauthorizedError } from '../../../../shared/accounts/authenticate.ts';
import type { ApiContext } from '../../context.ts';
import type { LoginThrottle } from '../access/loginThrottle.ts';
import type { Access } from '../route.ts';

const BEARER = /^bearer +(\S.*)$/i;

/** The token of `Authorization: Bearer`. Other schemes are ignored. */
function bearerToken({ req }: Context): string | undefined {
  if (req.headers.authorization === undefined) return undefined;
  // Node uses the first of several headers; a proxy may use another one.
  return BEARER.exec(req.headersDistinct['authorization']!.join(', '))?.[1]?.trimEnd();
}

/** The key of the request; empty without one. Throws `unauthorized` for two different keys. */
function presentedKey(ctx: Context): string {
  const key = ctx.get('x-api-key');
  const token = bearerToken(ctx);
  if (token === undefined) return key;
  if (key !== '' && key !== token)
    throw new TurnlogError(
      'unauthorized',
      'The request carries one API key in x-api-key and another one in Authorization.',
    );
  return token;
}

/** The authenticated client and the scopes of its key. */
interface Caller {
  actor: Actor;
  scopes: readonly Scope[];
}

/** Identifies the client of a request by its API key or chat token. */
export const createAuthenticator = (
  { cachedRows: rows, clock, store }: ApiContext,
  rejectLogin: LoginThrottle,
) =>
  async function authenticated(ctx: Context, access: Access): Promise<Caller> {
    const client_request_id = ctx.state['request_id'] as string;
    const request_id = ctx.state['recorded_request_id'] as string;
    if (access === 'open') return { actor: { account_id: '', key_id: '', request_id }, scopes: [] };
    const key = presentedKey(ctx);
    if (key === '') throw unauthorizedError();
    const { principal, key_id } = await identify({ rows, keys: store.keys }, key, clock.now());
    if (!principal)
      return rejectLogin({
        address: ctx.req.socket.remoteAddress ?? '',
        key_id,
        request_id: client_request_id,
      });
    const { scopes, ...client } = principal;
    return { actor: { ...client, request_id, client_request_id }, scopes };
  };
