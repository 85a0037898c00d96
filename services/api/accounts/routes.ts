import type { Context } from 'koa';
import type { Static } from 'typebox';
import { unauthorizedError } from '../../../shared/accounts/authenticate.ts';
import {
  findOwnKey,
  issueManagedKey,
  keyNotFoundError,
  requireKeyIssuable,
  requireKeyRotatable,
  revokeManagedKey,
  rotateManagedKey,
} from '../../../shared/accounts/manageKeys.ts';
import {
  openManagedAccount,
  requireAccountRoom,
} from '../../../shared/accounts/openManagedAccount.ts';
import { TurnlogError, type ErrorCode } from '../../../shared/lib/errors/turnlogError.ts';
import { isoTime } from '../../../shared/ports/clock.ts';
import { idempotencyInProgressError } from '../../../shared/requests/idempotency.ts';
import type { AccountRow, ApiKeyRow } from '../../../shared/readModels/tables.ts';
import type { Rejection } from '../../../shared/domain/rejection.ts';
import { DEFECT } from '../http/errors/errorPresenter.ts';
import { STREAM_ERROR_CODES } from '../http/errors/errorResponses.ts';
import { defineFeature } from '../http/feature.ts';
import { sendData } from '../http/responses/envelope.ts';
import { PAGE_BUFFER_BYTES, parsePageQuery, renderPage } from '../http/responses/listResponse.ts';
import { defineRoute } from '../http/route.ts';
import { CommonQuery, KeyId } from '../openapi/commonSchemas.ts';
import { presentAccount, presentIssuedKey, presentKey, presentOpenedAccount } from './presenter.ts';
import {
  AccountList,
  AccountListQuery,
  ApiKey,
  ApiKeyList,
  IssuedKey,
  IssueKeyBody,
  KeyListQuery,
  OpenAccountBody,
  OpenedAccount,
  RevokedKey,
  RotatedKey,
  RotateKeyBody,
} from './schemas.ts';

const KEY_PATH = '/v1/keys/{keyId}';
const RULES = 'A key manages only keys of its account that have no scopes beyond its own.';
const SHOWN_ONCE =
  'The answer has the key itself, which is stored nowhere: a repeated request with the same `Idempotency-Key` issues nothing and answers `api_key: null`.';

/**
 * Sends the response at once: a request may revoke its own key, and after a wait the router answers
 * 401 for a key that is no longer valid.
 */
function sendRecorded(ctx: Context, data: object): undefined {
  sendData(ctx, data);
}

function sendIssued(ctx: Context, data: Static<typeof IssuedKey>): undefined {
  ctx.set('location', `/v1/keys/${data.key_id}`);
  return sendRecorded(ctx, data);
}

const issueKeyRoute = defineRoute({
  method: 'post',
  path: '/v1/keys',
  operationId: 'issueKey',
  summary: 'Issues an API key of the account',
  description: `${RULES} The new key expires no later than the key that issues it. ${SHOWN_ONCE}`,
  access: 'keys:write',
  query: CommonQuery,
  body: IssueKeyBody,
  data: IssuedKey,
  returnsLocation: true,
  errors: ['key_limit_reached', ...STREAM_ERROR_CODES],
  idempotency: {
    prepare: (api, { actor, body }) => requireKeyIssuable(api, actor, body),
    reserve: ({ ids }) => ({ id: ids.typeId('key') }),
  },
  handle: async (api, { actor, body, claim }, ctx) =>
    sendIssued(ctx, presentIssuedKey(await issueManagedKey(api, actor, body, claim))),
});

const listKeysRoute = defineRoute({
  method: 'get',
  path: '/v1/keys',
  operationId: 'listKeys',
  summary: "Lists the account's API keys, oldest first",
  description: 'Revoked and expired keys included. Each names the key that issued it.',
  access: 'keys:write',
  query: KeyListQuery,
  data: ApiKeyList,
  errors: [],
  bufferBytes: PAGE_BUFFER_BYTES,
  handle: async ({ readModels, clock }, { actor, query }) => {
    const now = clock.now();
    const page = await readModels.listApiKeys(actor.account_id, {
      ...parsePageQuery(query),
      ...(query.state === 'active' && { activeAt: isoTime(now) }),
    });
    const format = {
      emptyData: [],
      present: (row: ApiKeyRow) => presentKey(row, now),
      cursorOf: ({ key_id }: ApiKeyRow) => key_id,
    };
    return { page: (to) => renderPage(page, format, to) };
  },
});

const getKeyRoute = defineRoute({
  method: 'get',
  path: KEY_PATH,
  operationId: 'getKey',
  summary: 'Returns one API key and its state',
  access: 'keys:write',
  query: CommonQuery,
  data: ApiKey,
  errors: ['key_not_found'],
  handle: async (api, { actor, params }) => ({
    data: presentKey(await findOwnKey(api, actor.account_id, params['keyId']!), api.clock.now()),
  }),
});

const rotateKeyRoute = defineRoute({
  method: 'post',
  path: `${KEY_PATH}/rotate`,
  operationId: 'rotateKey',
  summary: 'Replaces an API key by a new one with the same name and scopes',
  description: `The old key stays valid for the overlap. ${RULES} A key can rotate itself. ${SHOWN_ONCE}`,
  access: 'keys:write',
  query: CommonQuery,
  body: RotateKeyBody,
  bodyOptional: true,
  data: RotatedKey,
  returnsLocation: true,
  errors: ['key_not_found', 'key_inactive', 'key_limit_reached', ...STREAM_ERROR_CODES],
  idempotency: {
    prepare: (api, { actor, params, body }) =>
      requireKeyRotatable(api, actor, { key_id: params['keyId']!, ...body }),
    reserve: ({ ids }) => ({ id: ids.typeId('key') }),
  },
  handle: async (api, { actor, params, body, claim }, ctx) => {
    const key_id = params['keyId']!;
    const { issued, old_expires_at: expires_at } = await rotateManagedKey(
      api,
      actor,
      { key_id, ...body },
      claim,
    );
    const data = { ...presentIssuedKey(issued), replaces: { key_id, expires_at } };
    return sendIssued(ctx, data);
  },
});

const revokeKeyRoute = defineRoute({
  method: 'delete',
  path: KEY_PATH,
  operationId: 'revokeKey',
  summary: 'Revokes an API key',
  description: `Later requests with the key get 401, on every replica within a second, and its streams end. Repeating the request changes nothing. ${RULES} A key can revoke itself, unless no other key of the account has \`keys:write\`.`,
  access: 'keys:write',
  query: CommonQuery,
  data: RevokedKey,
  errors: ['key_not_found', 'last_key', ...STREAM_ERROR_CODES],
  handle: async (api, { actor, params }, ctx) => {
    const key_id = params['keyId']!;
    await revokeManagedKey(api, actor, key_id);
    return sendRecorded(ctx, { key_id });
  },
});

const openAccountRoute = defineRoute({
  method: 'post',
  path: '/v1/accounts',
  operationId: 'openAccount',
  summary: 'Opens an account with a first API key',
  description: `The first key has all scopes of an account and \`keys:write\`, but not \`accounts:write\` and \`metrics:read\`. The key that opens an account has no access to it. ${SHOWN_ONCE}`,
  access: 'accounts:write',
  query: CommonQuery,
  body: OpenAccountBody,
  data: OpenedAccount,
  errors: ['account_limit_reached', ...STREAM_ERROR_CODES],
  idempotency: {
    prepare: (api) => requireAccountRoom(api),
    reserve: ({ ids }) => ({ id: ids.typeId('acct') }),
  },
  handle: async (api, { actor, body, claim }, ctx) =>
    sendRecorded(ctx, presentOpenedAccount(await openManagedAccount(api, actor, body.name, claim))),
});

const ACCOUNT_LIST = {
  emptyData: [],
  present: presentAccount,
  cursorOf: ({ account_id }: AccountRow) => account_id,
};

const listAccountsRoute = defineRoute({
  method: 'get',
  path: '/v1/accounts',
  operationId: 'listAccounts',
  summary: 'Lists all accounts, oldest first',
  access: 'accounts:write',
  query: AccountListQuery,
  data: AccountList,
  errors: [],
  bufferBytes: PAGE_BUFFER_BYTES,
  handle: async ({ readModels }, { query }) => {
    const page = await readModels.pageAccounts(parsePageQuery(query));
    return { page: (to) => renderPage(page, ACCOUNT_LIST, to) };
  },
});

/** The client error of a rejection, with its message. */
const as =
  (code: ErrorCode) =>
  ({ message }: Rejection): TurnlogError =>
    new TurnlogError(code, message);

function invalidLifetime({ message }: Rejection): TurnlogError {
  const field = `"expires_in_seconds" ${message}.`;
  return new TurnlogError('invalid_request', `The request body is not valid: ${field}`, {
    details: { expires_in_seconds: { message: field, path: '/expires_in_seconds' } },
  });
}

export const accountsFeature = defineFeature({
  routes: [
    issueKeyRoute,
    listKeysRoute,
    getKeyRoute,
    rotateKeyRoute,
    revokeKeyRoute,
    openAccountRoute,
    listAccountsRoute,
  ],
  tags: { keys: 'API keys of the account', accounts: 'Accounts, for operators' },
  pathParameters: { keyId: KeyId },
  errors: {
    key_not_found: { status: 404, description: 'The account has no such API key' },
    key_inactive: {
      status: 409,
      description: 'The API key is revoked or expired: issue a new one',
    },
    key_limit_reached: {
      status: 409,
      description: 'The account has as many API keys as it may have; nothing was issued',
    },
    last_key: {
      status: 409,
      description: 'No other key of the account could issue keys; nothing was revoked',
    },
    account_limit_reached: {
      status: 409,
      description: 'There are as many accounts as may be opened through the API',
    },
  },
  rejections: {
    account_exists: idempotencyInProgressError,
    account_missing: DEFECT,
    account_erased: unauthorizedError,
    account_held: DEFECT,
    retention_invalid: DEFECT,
    key_exists: idempotencyInProgressError,
    key_unknown: keyNotFoundError,
    key_inactive: as('key_inactive'),
    key_limit: as('key_limit_reached'),
    key_outlives_manager: invalidLifetime,
    key_scopes_exceeded: as('forbidden'),
    last_manager: as('last_key'),
    manager_invalid: unauthorizedError,
  },
});
