import type { Context } from 'koa';
import type { Static, TNever, TObject, TSchema } from 'typebox';
import type { Actor } from '../../../shared/commandHandling/context.ts';
import type { Claim } from '../../../shared/requests/idempotency.ts';
import type { Scope } from '../../../shared/accounts/events.ts';
import type { Reserved } from '../../../shared/requests/events.ts';
import type { ErrorCode } from '../../../shared/lib/errors/turnlogError.ts';
import type { RouteContext } from '../context.ts';
import type { RenderedPage, RenderOptions } from './responses/listResponse.ts';

/** `open` to everyone, for any valid API key (`key`), or for a key with the scope. */
export type Access = 'open' | 'key' | Scope;

/**
 * What a route answers: the envelope's data, a page of it, which is written row by row, or bytes of
 * the route's `media`, or of another one that it names, without an envelope.
 */
export type Answer<Data> =
  | { data: Data; status?: 200 | 202 }
  | { page: (to: RenderOptions) => Promise<RenderedPage> }
  | { bytes: Uint8Array; media?: string };

/** A request as its operation is handed it. */
export interface RouteRequest<Query, Body, Prepared = unknown> {
  actor: Actor;
  params: Readonly<Record<string, string>>;
  query: Query;
  body: Body;
  /** Of a POST with an `Idempotency-Key`. */
  claim?: Claim<Prepared>;
}

/** What makes a POST safe to send again. Every route with this method has one. */
export interface Idempotency<Query, Body, Prepared = unknown> {
  /**
   * Rejects what the operation would reject, so that nothing is recorded of such a request. The
   * operation of a first attempt gets the result as `claim.prepared`.
   */
  prepare?(api: RouteContext, request: RouteRequest<Query, Body>): Promise<Prepared>;
  /**
   * What the first attempt fixes for later ones: ids of what it creates, or where its events begin.
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
  /** Where the stream has an end, which is answered with 204 to who has it already. */
  ends?: true;
}

/**
 * One operation of the API, described once: the router and the OpenAPI document are both made from
 * it.
 */
export interface Route<
  Query extends TObject = TObject,
  Body extends TSchema = TSchema,
  Data extends TSchema = TSchema,
  Accepted extends TSchema = TSchema,
  Prepared = unknown,
> {
  method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  /** Of each POST: how it is safe to send again. Other methods are so by themselves. */
  idempotency?: Idempotency<Static<Query>, Static<Body>, Prepared>;
  /** In OpenAPI's notation: `/v1/agents/{agentId}`. */
  path: string;
  /** The same for the router, where a parameter may be several segments, which OpenAPI can't say. */
  routerPath?: string;
  operationId: string;
  summary: string;
  description?: string;
  access: Access;
  /** Open to everyone where `LOG_PUBLIC` says so; by the scope of `access` otherwise. */
  publishable?: true;
  query?: Query;
  body?: Body;
  /** Where a request without a body stands for one of no fields. */
  bodyOptional?: true;
  /** What a `Prefer` header may ask of the operation. */
  prefer?: string;
  data: Data;
  /** What 202 answers, where the operation may go on after its answer. */
  accepted?: Accepted;
  /** The media type of an answer that is bytes; JSON in the envelope without it. */
  media?: string;
  /** Of an answer that is a stream of events, alone or where the client accepts one: what it says. */
  events?: RouteEvents;
  /** Another media type that the answer may have. */
  alternateMedia?: string;
  /** Headers of the request that the operation looks at, by their names. */
  headers?: Readonly<Record<string, TSchema>>;
  /** The operation answers `If-None-Match`, and its responses carry an `ETag`. */
  ifNoneMatch?: true;
  /** `If-Match` makes the operation conditional. */
  ifMatch?: true;
  /** Responses carry an `ETag`, though the operation does not answer `If-None-Match`. */
  returnsEtag?: true;
  /** What a client may do with the response: OpenAPI links, by name. */
  links?: Readonly<Record<string, object>>;
  /** The codes that are this operation's own, beside those that any operation may answer. */
  errors: readonly ErrorCode[];
  /** Bytes that the answer may hold while it is made; there is to be room for them first. */
  bufferBytes?: number;
  /** Gives the data, or writes the whole answer itself and gives nothing. */
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

/** Lets a route's handler know the types of its own schemas. */
export const defineRoute = <
  Query extends TObject,
  Body extends TSchema,
  Data extends TSchema,
  Accepted extends TSchema = TNever,
  Prepared = unknown,
>(
  route: Route<Query, Body, Data, Accepted, Prepared> & Method,
): Route => route;
