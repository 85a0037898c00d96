import type { Context } from 'koa';
import { authenticate, requireScope } from '../../../shared/queries/authenticate.ts';
import type { Actor } from '../../../shared/commands/context.ts';
import type { ApiContext } from '../context.ts';
import type { Access } from '../route.ts';

/** Who the request is from. Errors: `unauthorized`, `forbidden`. */
export async function authenticated(
  { known, clock }: ApiContext,
  ctx: Context,
  access: Access,
): Promise<Actor> {
  const request_id = ctx.state['request_id'] as string;
  if (access === 'open') return { account_id: '', key_id: '', request_id };
  const principal = await authenticate(known, ctx.get('x-api-key'), clock.now());
  if (access !== 'key') requireScope(principal, access);
  return { account_id: principal.account_id, key_id: principal.key_id, request_id };
}
