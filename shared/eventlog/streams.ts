/**
 * The kinds of streams; a stream's name is its kind, a dash and the id. Whoever filters a log by
 * streams takes them from here.
 */
export const STREAM_KINDS = [
  'account',
  'agent',
  'audit',
  'log',
  'replay',
  'request',
  'session',
  'webhook',
] as const;
export type StreamKind = (typeof STREAM_KINDS)[number];

const streamOf =
  (kind: StreamKind) =>
  (id: string): string =>
    `${kind}-${id}`;

export const accountStream = streamOf('account');
export const agentStream = streamOf('agent');
/** What was done with an account's events: apart, because it grows with each time that they are read. */
export const auditStream = streamOf('audit');
export const logStream = streamOf('log');
export const replayStream = streamOf('replay');
/** A request that its client may send again; its id is shared/requests/requestId.ts's. */
export const requestStream = streamOf('request');
export const sessionStream = streamOf('session');
export const webhookStream = streamOf('webhook');

/** A UUIDv7 in 26 characters of Crockford's base 32 (TypeID). */
const ID = /^[0-7][0-9a-hjkmnp-tv-z]{25}$/;

/** True for what can be the id of one of these: no other names a stream. */
export const isIdOf = (kind: 'agent' | 'replay' | 'session' | 'webhook', id: string): boolean =>
  id.startsWith(`${kind}_`) && ID.test(id.slice(kind.length + 1));

/** What the names of our streams begin with, in a log that others may write to as well. */
export const STREAM_PREFIXES: readonly string[] = STREAM_KINDS.map((kind) => `${kind}-`);

/** The id that a stream's name carries: everything after the first dash. */
export const streamId = (stream: string): string => stream.slice(stream.indexOf('-') + 1);

/** The kind of a stream: all before the first dash. */
export const streamKind = (stream: string): string =>
  stream.slice(0, Math.max(0, stream.indexOf('-')));

/** What the types of events begin with that an account has beside its stream. */
const AUDITED = 'account.audited.';

/**
 * True when a stream of that name may hold an event of that type: types begin with the kind of
 * their streams, but for those of an account's audit.
 */
export const belongsIn = (stream: string, type: string): boolean =>
  type.startsWith(AUDITED)
    ? streamKind(stream) === 'audit'
    : type.startsWith(`${streamKind(stream)}.`);
