/** Names the streams of a kind: the kind, a dash and the id. */
const streamOf =
  (kind: string) =>
  (id: string): string =>
    `${kind}-${id}`;

export const accountStream = streamOf('account');
export const agentStream = streamOf('agent');
/** Operator access to an account's events. A separate stream, because every read appends to it. */
export const auditStream = streamOf('audit');
export const logStream = streamOf('log');
export const replayStream = streamOf('replay');
/** An idempotent request; shared/requests/idempotency.ts derives its id. */
export const requestStream = streamOf('request');
/** The proven time of the log, or the erasures of an account that an operator confirmed. */
export const retentionStream = streamOf('retention');
export const sessionStream = streamOf('session');
export const webhookStream = streamOf('webhook');

/** A UUIDv7 in 26 characters of Crockford's base 32 (TypeID). */
const ID = /^[0-7][0-9a-hjkmnp-tv-z]{25}$/;

/** True for a well-formed id of the kind; other text can't name a stream. */
export const isIdOf = (
  kind: 'agent' | 'key' | 'replay' | 'session' | 'webhook',
  id: string,
): boolean => id.startsWith(`${kind}_`) && ID.test(id.slice(kind.length + 1));

/** The id in a stream's name: everything after the first dash. */
export const streamId = (stream: string): string => stream.slice(stream.indexOf('-') + 1);

/** The kind of a stream: everything before the first dash. */
export const streamKind = (stream: string): string =>
  stream.slice(0, Math.max(0, stream.indexOf('-')));
