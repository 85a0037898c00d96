import type { Context } from 'koa';
import type { Static, TNever, TObject, TSchema } from 'typebox';
import type { Actor } from '../../../shared/commandHandling/context.ts';
import type { ChatTarget } from '../../../shared/chatTokens/chatAccess.ts';
import type { Claim } from '../../../shared/requests/idempotency.ts';
import type { Scope } from '../../../shared/accounts/events.ts';
import type { Reserved } from '../../../shared/requests/events.ts';
import type { ErrorCode } from '../../../shared/lib/errors/turnlogError.ts';
import type { RouteContext } from '../context.ts';
import type { RenderedPage, RenderOptions } from './responses/listResponse.ts';

/** `open` to everyone, for any valid API key (`key`), or for a key with the scope. */
export type Access = 'open' | 'key' | Scope;

/**
 * The response of a route: data in the envelope, a page of it that is written row by row, or bytes
 * without an envelope, of the route's media type unless it names another one.
 */
export type Answer<Data> =
  | { data: Data; status?: 200 | 202 }
  | { page: (to: RenderOptions) => Promise<RenderedPage> }
  | { bytes: Uint8Array; media?: string };

type Params = Readonly<Record<string, string>>;

/** A validated request. */
export interface RouteRequest<Query, Body, Prepared = unknown> {
  actor: Actor;
  params: Params;
  query: Query;
  body: Body;
  /** Present for a POST with an `Idempotency-Key`. */
  claim?: Claim<Prepared>;
  /** Acquires the rest of `bufferBytes` for a route with `waitBytes`. */
  acquireBuffer: () => Promise<void>;
}

/** How a POST is retried safely. Every POST route has one. */
interface Idempotency<Query, Body, Prepared = unknown> {
  /**
   * Rejects what the operation would reject, so that nothing is recorded of such a request. The
   * operation of a first attempt gets the result as `claim.prepared`.
   */
  prepare?(api: RouteContext, request: RouteRequest<Query, Body>): Promise<Prepared>;
  /**
   * The data that the first attempt fixes for later ones: ids to create, or where its events begin.
   * The operation uses what was reserved, and finds what an earlier attempt has written.
   */
  reserve(
    api: RouteContext,
    request: RouteRequest<Query, Body>,
    prepared: Prepared,
  ): Reserved | Promise<Reserved>;
}

interface RouteEvents {
  description: string;
  /** One event of the stream, with its `data` parsed. */
  schema?: TSchema;
  /** The stream has an end: a client that has received it gets 204. */
  ends?: true;
}

/** One operation of the API. The router and the OpenAPI document both follow from it. */
export interface Route<
  Query extends TObject = TObject,
  Body extends TSchema = TSchema,
  Data extends TSchema = TSchema,
  Accepted extends TSchema = TSchema,
  Prepared = unknown,
> {
  method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  /** Required for POST; other methods are idempotent by definition. */
  idempotency?: Idempotency<Static<Query>, Static<Body>, Prepared>;
  /** In OpenAPI notation: `/v1/agents/{agentId}`. */
  path: string;
  /** For parameters of several segments, which OpenAPI can't express: the path in router notation. */
  routerPath?: string;
  operationId: string;
  summary: string;
  description?: string;
  access: Access;
  /**
   * Accepts chat tokens for what the request names. An operation without this function refuses them.
   */
  chatTarget?(request: { params: Params; body: Static<Body> }): ChatTarget;
  /** Needs no API key where `LOG_PUBLIC` is set; otherwise `access` applies. */
  publishable?: true;
  query?: Query;
  body?: Body;
  /** A missing body counts as an empty object. */
  bodyOptional?: true;
  /** Describes the preferences that the operation supports. */
  prefer?: string;
  data: Data;
  /** Members that the envelope of a 200 may have beside `data`. */
  envelope?: Readonly<Record<string, TSchema>>;
  /** The data of a 202 response, where the operation may continue in the background. */
  accepted?: Accepted;
  /** The media type of a response of bytes; without it, the response is JSON in the envelope. */
  media?: string;
  /** Describes the event stream that the operation offers, alone or as an alternative. */
  events?: RouteEvents;
  /** Another media type that the response may have. */
  alternateMedia?: string;
  /** Request headers that the operation reads. */
  headers?: Readonly<Record<string, TSchema>>;
  /** The operation answers `If-None-Match`, and its responses carry an `ETag`. */
  ifNoneMatch?: true;
  /** `If-Match` makes the operation conditional. */
  ifMatch?: true;
  /** Responses carry an `ETag`, though the operation does not answer `If-None-Match`. */
  returnsEtag?: true;
  /** Responses carry the `Location` of what was created. */
  returnsLocation?: true;
  /** Responses carry a `Link` to the proof of what was erased. */
  returnsProofLink?: true;
  /** OpenAPI links of the response, by name. */
  links?: Readonly<Record<string, object>>;
  /** Error codes of this operation, in addition to those of any operation. */
  errors: readonly ErrorCode[];
  /** Response memory to acquire before the handler runs, so that a change is made only if it is answered. */
  bufferBytes?: number;
  /**
   * What is acquired of that memory before a handler that waits for what it reads. It acquires the rest
   * after the wait, so that a request that waits leaves memory to others of its account.
   */
  waitBytes?: number;
  /** Returns the answer, or undefined where it has written the response itself. */
  handle(
    api: RouteContext,
    request: RouteRequest<Static<Query>, Static<Body>, Prepared>,
    ctx: Context,
  ): Promise<Answer<Static<Data> | Static<Accepted>> | undefined>;
}

/** A POST without `idempotency` does not compile. */
type Method =
  | { method: 'post'; idempotency: object }
  | { method: Exclude<Route['method'], 'post'>; idempotency?: never };

/** Types the handler by the schemas of the route. */
export const defineRoute = <
  Query extends TObject,
  Body extends TSchema,
  Data extends TSchema,
  Accepted extends TSchema = TNever,
  Prepared = unknown,
>(
  route: Route<Query, Body, Data, Accepted, Prepared> & Method,
): Route => route;
