import type { Context } from 'koa';
import type { Static } from 'typebox';
import { Type } from '../../../shared/domain/jsonSchema.ts';
import { FIRST_ACCOUNT, issueKey } from '../../../shared/accounts/commands.ts';
import { SCOPES } from '../../../shared/accounts/events.ts';
import { waitUntilVisible } from '../../../shared/commandHandling/context.ts';
import { isRejection } from '../../../shared/domain/rejection.ts';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { isoTime } from '../../../shared/ports/clock.ts';
import type { ConsoleContext, RouteContext } from '../context.ts';
import { bodyValidator } from '../http/errors/validation.ts';
import { admitBody, readJsonBody } from '../http/middleware/jsonBody.ts';
import { sendData } from '../http/responses/envelope.ts';

/** How long the API key of a sign-in is valid. */
const KEY_LIFETIME_MS = 12 * 3_600_000;

const SignInBody = Type.Object(
  { code: Type.String({ minLength: 1, maxLength: 200 }) },
  { additionalProperties: false },
);
const checkBody = bodyValidator(SignInBody);

const LOOPBACK_ADDRESS = /^(?:::1|(?:::ffff:)?127(?:\.\d{1,3}){3})$/;
const LOOPBACK_HOST = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/i;
/** Headers of proxies, which make other clients look local. */
const FORWARDED = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip', 'via'];

/** True for a host of a URL, with or without a port, that names this machine. */
export const isLoopbackHost = (host: string): boolean => LOOPBACK_HOST.test(host);

/** True for a request from this machine to this machine that came through no proxy. */
export const isLocal = (ctx: Context): boolean =>
  LOOPBACK_ADDRESS.test(ctx.req.socket.remoteAddress ?? '') &&
  isLoopbackHost(ctx.get('host')) &&
  FORWARDED.every((name) => ctx.get(name) === '');

async function readCode(api: RouteContext, ctx: Context): Promise<string> {
  const permit = admitBody(ctx, api.memory, { account_id: '' });
  try {
    const body = await readJsonBody(ctx, { permit, account_id: '' }, checkBody);
    return (body as Static<typeof SignInBody>).code;
  } finally {
    permit.release();
  }
}

/** Issues a key with every scope to the account `default`. Errors: those of issueKey. */
async function issueConsoleKey(api: RouteContext, request_id: string) {
  const expiresAt = api.clock.now() + KEY_LIFETIME_MS;
  const actor = { account_id: FIRST_ACCOUNT, key_id: 'operator', request_id };
  const { key_id, api_key, position } = await issueKey(api, actor, {
    name: 'console',
    scopes: SCOPES,
    expiresAt,
  });
  if (position !== undefined) await waitUntilVisible(api, position);
  return { key_id, data: { api_key, expires_at: isoTime(expiresAt) } };
}

function toSignInError(error: unknown): unknown {
  const isWithoutAccount =
    isRejection(error, 'account_missing') || isRejection(error, 'account_erased');
  return isWithoutAccount
    ? new TurnlogError(
        'forbidden',
        'The link signs in to the account "default", which this log does not have or has erased. Sign in with an API key of another account.',
      )
    : error;
}

/**
 * Answers `POST /console/sign-in`: exchanges the code of the link that the start printed for an API
 * key. The key is issued now, not at the start, so that a start adds no event to the log. Errors:
 * `forbidden` for a request that is not local, `unauthorized` for another code, those of a JSON
 * body, of the login throttle and of issueKey.
 */
export async function signIn(
  api: RouteContext,
  { signInCode }: ConsoleContext,
  ctx: Context,
): Promise<void> {
  ctx.set('cache-control', 'no-store');
  if (!isLocal(ctx))
    throw new TurnlogError(
      'forbidden',
      'The link signs in only in a browser on the machine of the service, at localhost. Sign in with an API key.',
    );
  const code = await readCode(api, ctx);
  const { request_id, recorded_request_id } = ctx.state as Record<string, string>;
  if (!signInCode.take(code))
    return api.rejectLogin(
      { address: ctx.req.socket.remoteAddress ?? '', key_id: undefined, request_id: request_id! },
      new TurnlogError(
        'unauthorized',
        'The code is wrong, expired or used. Restart the service for a new link, or sign in with an API key.',
      ),
    );
  try {
    const { key_id, data } = await issueConsoleKey(api, recorded_request_id!);
    api.logger.info({ key_id, request_id }, 'the link of the start signed in to the console');
    sendData(ctx, data);
  } catch (error) {
    signInCode.giveBack();
    throw toSignInError(error);
  }
}
