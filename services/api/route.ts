import type { Context } from 'koa';
import type { Static, TObject, TSchema } from 'typebox';
import type { Actor } from '../../shared/commands/context.ts';
import type { Scope } from '../../shared/domain/account/events.ts';
import type { ErrorCode } from '../../shared/errors.ts';
import type { RouteContext } from './context.ts';
import type { PageBody, Recipient } from './pageBody.ts';

/** `open` to everyone, for any valid API key (`key`), or for a key with the scope. */
export type Access = 'open' | 'key' | Scope;

/**
 * What a route answers: the envelope's data, a page of it, which is written row by row, or bytes of
 * the route's `media`, or of another one that it names, without an envelope.
 */
export type Answer<Data> =
  | { data: Data; status?: 200 | 202 }
  | { page: (to: Recipient) => Promise<PageBody> }
  | { bytes: Uint8Array; media?: string };

interface RouteRequest<Query, Body> {
  actor: Actor;
  params: Readonly<Record<string, string>>;
  query: Query;
  body: Body;
}

/**
 * One operation of the API, described once: the router and the OpenAPI document are both made from
 * it.
 */
export interface Route<
  Query extends TObject = TObject,
  Body extends TSchema = TSchema,
  Data extends TSchema = TSchema,
> {
  method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  /** In OpenAPI's notation: `/v1/agents/{agentId}`. */
  path: string;
  /** The same for the router, where a parameter may be several segments, which OpenAPI can't say. */
  served?: string;
  operationId: string;
  summary: string;
  description?: string;
  access: Access;
  /** Open to everyone where `LOG_PUBLIC` says so; by the scope of `access` otherwise. */
  publishable?: true;
  query?: Query;
  body?: Body;
  data: Data;
  /** The media type of an answer that is bytes; JSON in the envelope without it. */
  media?: string;
  /** Another media type that the answer may have. */
  orMedia?: string;
  /** Headers of the request that the operation looks at, by their names. */
  headers?: Readonly<Record<string, TSchema>>;
  /** The codes that are this operation's own, beside those that any operation may answer. */
  errors: readonly ErrorCode[];
  /** Bytes that the answer may hold while it is made; there is to be room for them first. */
  holds?: number;
  /** Gives the data, or writes the whole answer itself and gives nothing. */
  handle: (
    api: RouteContext,
    request: RouteRequest<Static<Query>, Static<Body>>,
    ctx: Context,
  ) => Promise<Answer<Static<Data>> | undefined>;
}

/** Lets a route's handler know the types of its own schemas. */
export const defineRoute = <Query extends TObject, Body extends TSchema, Data extends TSchema>(
  route: Route<Query, Body, Data>,
): Route => route;
