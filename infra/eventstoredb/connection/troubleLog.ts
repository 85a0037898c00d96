import {
  isTurnlogError,
  storeUnavailableError,
  type TurnlogError,
} from '../../../shared/lib/errors/turnlogError.ts';
import { DeadlineExceeded } from '../../../shared/lib/time/withDeadline.ts';
import type { Position } from '../../../shared/ports/eventStore.ts';
import { formatHost, type ConnectionTarget, type Host } from './connectionString.ts';
import {
  isAccessDenied,
  isConnectionRefused,
  isUnauthenticated,
  NotReadyError,
  serverMessage,
} from './serverErrors.ts';

/** The part of a logger that the adapter uses. Compatible with pino. */
export type StoreLogger = Record<'warn', (fields: object, message: string) => void>;

/** The trouble while no host has answered or failed yet. */
export const NO_ANSWER = 'The event store does not answer.';

/** Node.js's and OpenSSL's messages about certificates that are not accepted. */
const CERTIFICATE_ERROR = /certificate|self.signed|unable to verify|altnames|does not match/i;
/** OpenSSL's message about a node that refuses the certificate of this service. */
const OWN_CERTIFICATE = /alert (bad certificate|certificate|unknown ca)/i;
const OTHER_NAME = /altnames|does not match/i;
const NOT_NOW = /expired|not yet valid/i;
/** Node.js's advice about its own option, which does not help where tlsCAFile is set. */
const NODE_ADVICE = /; if the root CA is installed locally.*/s;
const TLS_ERROR = /SSL|TLS|EPROTO|wrong version number/i;
/** OpenSSL's messages about a peer that answers a TLS handshake with something else. */
const NOT_TLS = /wrong version number|packet length too long|http request/i;
/** The client's message about a host that accepts the connection and closes it at the first bytes. */
const CLOSED_AT_ONCE = /^Failed to connect/;

const rootCause = (message: string): string =>
  /Last error: (?:Error: )?(.*?)(?:\. Resolution note:|$)/s.exec(message)?.[1] ?? message;

/** Advice about a certificate that is not accepted. */
function certificateRemedy(message: string, { caFile }: ConnectionTarget): string {
  if (OTHER_NAME.test(message))
    return 'use a name of the certificate in EVENTSTOREDB_URL and in the address that the node advertises';
  if (NOT_NOW.test(message)) return 'renew it, or correct the clock';
  const file = 'set tlsCAFile in EVENTSTOREDB_URL to the file of its authority';
  return caFile === undefined ? file : `the certificates in ${caFile} are trusted; ${file}`;
}

/** The trouble with a host that accepts connections but does not answer. */
export const describeSilentHost = (host: Host): string =>
  `The event store at ${formatHost(host)} takes connections, but does not answer: check whether the node hangs, and what listens there.`;

/** Describes for an operator, in one sentence without secrets, why a host can't be used. */
export function describeHostError(host: Host, target: ConnectionTarget, error: unknown): string {
  const name = formatHost(host);
  if (isTurnlogError(error)) return error.message;
  const message = rootCause(serverMessage(error));
  if (error instanceof DeadlineExceeded) return describeSilentHost(host);
  if (isUnauthenticated(error))
    return `The event store at ${name} refuses the user or the password of EVENTSTOREDB_URL: correct the URL and restart, or set the user's password on the server.`;
  if (isAccessDenied(error) && !target.hasUser)
    return `The event store at ${name} asks for a user: add one to EVENTSTOREDB_URL, as in esdb://user:password@host.`;
  if (isAccessDenied(error))
    return `The event store at ${name} does not let this user read $all, which takes the right $r in the metadata of $all.`;
  if (error instanceof NotReadyError || /Server Is Not Ready/i.test(message))
    return `The event store at ${name} is not ready: it is starting, or its cluster has no leader.`;
  if (isConnectionRefused(error))
    return `The event store at ${name} refuses connections: start the node, or correct the host and the port in EVENTSTOREDB_URL.`;
  if (/ENOTFOUND|EAI_AGAIN|Name resolution failed/i.test(message))
    return `The host of the event store ${name} is not found: correct it in EVENTSTOREDB_URL, or its DNS entry.`;
  if (OWN_CERTIFICATE.test(message))
    return `The event store at ${name} refuses the certificate of this service (${message}): correct userCertFile and userKeyFile in EVENTSTOREDB_URL.`;
  if (CERTIFICATE_ERROR.test(message))
    return `The certificate of the event store at ${name} is not accepted (${message.replace(NODE_ADVICE, '')}): ${certificateRemedy(message, target)}.`;
  if (target.tls && NOT_TLS.test(message))
    return `The event store at ${name} does not speak TLS: turn it on there, or add tls=false to EVENTSTOREDB_URL.`;
  if (!target.tls && CLOSED_AT_ONCE.test(message))
    return `The event store at ${name} takes connections and closes them. It seems to expect TLS: remove tls=false from EVENTSTOREDB_URL.`;
  if (TLS_ERROR.test(message))
    return `The event store at ${name} and this service don't agree on TLS (${message}).`;
  return `The event store at ${name} can't be reached (${message}).`;
}

/** The minimum time between two lines about a changing trouble, in milliseconds. */
const LOG_INTERVAL_MS = 5_000;
/** NO_ANSWER is logged only after this time, in milliseconds: the node may just be slow. */
const NO_ANSWER_DELAY_MS = 1_000;

/** Holds the current trouble of the store, and logs when it begins, changes or ends. */
export function createTroubleLog(logger: StoreLogger | undefined) {
  let current: string | undefined;
  let changedAt = 0;
  let beganAt = 0;
  let lastLogged: { trouble: string; at: number } | undefined;

  function shouldLog(trouble: string): boolean {
    const now = performance.now();
    if (trouble === NO_ANSWER && now - changedAt < NO_ANSWER_DELAY_MS) return false;
    return !lastLogged || (lastLogged.trouble !== trouble && now - lastLogged.at > LOG_INTERVAL_MS);
  }

  return {
    current: () => current,
    /** How long there has been a trouble, in milliseconds; 0 without one. */
    lastsMs: () => (current === undefined ? 0 : performance.now() - beganAt),
    set(trouble: string | undefined): void {
      if (trouble !== current) changedAt = performance.now();
      if (current === undefined || trouble === undefined) beganAt = performance.now();
      current = trouble;
      if (trouble === undefined && lastLogged) {
        // Uses the level of the line that it ends, so that a log filter shows both or neither.
        logger?.warn({}, 'the event store can be used again');
        lastLogged = undefined;
      } else if (trouble !== undefined && shouldLog(trouble)) {
        logger?.warn({}, trouble);
        lastLogged = { trouble, at: performance.now() };
      }
    },
  };
}

/** How long a false answer remains a trouble, in milliseconds. Later answers may look right. */
const FALSE_ANSWER_MS = 60_000;

/** Tracks answers that acknowledge an append beyond the end of the log. */
export function createFalseAnswers(logger: StoreLogger | undefined) {
  let last: { sentence: string; at: number } | undefined;
  let loggedAt = -Infinity;

  return {
    /** Records and logs an answer. Returns the `store_unavailable` to throw. */
    report(position: Position): TurnlogError {
      const sentence = `The event store acknowledged an append at ${position}, which lies beyond the end of its log.`;
      const at = performance.now();
      last = { sentence, at };
      if (at - loggedAt > LOG_INTERVAL_MS) {
        logger?.warn({}, sentence);
        loggedAt = at;
      }
      return storeUnavailableError(sentence);
    },
    trouble: (): string | undefined =>
      last && performance.now() - last.at < FALSE_ANSWER_MS ? last.sentence : undefined,
  };
}

/** After this many consecutive denials the whole store is in trouble, not a single stream. */
const DENIALS_FOR_TROUBLE = 3;
/** Denials older than this, in milliseconds, are ignored: callers may have stopped calling. */
const DENIAL_LIFETIME_MS = 10_000;

/** The right that a call needs, for example `append to session-1 ($w)`. */
export interface RequiredRight {
  kind: 'append' | 'read';
  description: string;
}

interface Denials {
  count: number;
  sentence: string;
  lastAt: number;
}

/**
 * Tracks rights that the user lacks. A denial for one stream is logged. Repeated denials without a
 * successful call in between are a trouble of the whole store.
 */
export function createAccessDenials(logger: StoreLogger | undefined) {
  const denials = new Map<RequiredRight['kind'], Denials>();

  return {
    recordDenied({ kind, description }: RequiredRight, cause: unknown): Error {
      const sentence = `The event store does not let this user ${description}.`;
      const previous = denials.get(kind);
      if (sentence !== previous?.sentence) logger?.warn({}, sentence);
      denials.set(kind, {
        count: (previous?.count ?? 0) + 1,
        sentence,
        lastAt: performance.now(),
      });
      return new Error(sentence, { cause });
    },
    recordAllowed: ({ kind }: RequiredRight): void => void denials.delete(kind),
    trouble: (): string | undefined =>
      [...denials.values()].find(
        ({ count, lastAt }) =>
          count >= DENIALS_FOR_TROUBLE && performance.now() - lastAt < DENIAL_LIFETIME_MS,
      )?.sentence,
  };
}
