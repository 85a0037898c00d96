import { isTurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { hostName, type Host, type Target } from './connectionString.ts';
import { isAccessDenied, isRefused, isUnauthenticated, NotReady, saidBy } from './serverErrors.ts';

/** A call was not answered in its time. */
export class Silence extends Error {}

/** Said while nothing more is known: no host has answered yet, and none is known to be in trouble. */
export const NO_ANSWER = 'The event store does not answer.';

/** What Node.js and OpenSSL call the reasons for not trusting a certificate. */
const CERTIFICATE = /certificate|self.signed|unable to verify|altnames|does not match/i;
const TLS = /SSL|TLS|EPROTO|wrong version number/i;

const rootCauseOf = (text: string): string =>
  /Last error: (?:Error: )?(.*?)(?:\. Resolution note:|$)/s.exec(text)?.[1] ?? text;

/** Why a host can't be used, in a sentence that an operator understands; never a secret. */
export function troubleWith(host: Host, target: Target, error: unknown): string {
  const name = hostName(host);
  if (isTurnlogError(error)) return error.message;
  const said = rootCauseOf(saidBy(error));
  if (error instanceof Silence)
    return `The event store at ${name} takes connections, but does not answer.`;
  if (isUnauthenticated(error))
    return `The event store at ${name} refuses the user or the password of EVENTSTOREDB_URL.`;
  if (isAccessDenied(error))
    return `The event store at ${name} does not let this user read $all, which takes the right $r in the metadata of $all.`;
  if (error instanceof NotReady || /Server Is Not Ready/i.test(said))
    return `The event store at ${name} is not ready: it is starting, or its cluster has no leader.`;
  if (isRefused(error)) return `The event store at ${name} refuses connections.`;
  if (/ENOTFOUND|EAI_AGAIN|Name resolution failed/i.test(said))
    return `The host of the event store ${name} is not found.`;
  if (CERTIFICATE.test(said)) {
    const trusted =
      target.caFile === undefined ? 'those that the system trusts' : `the one in ${target.caFile}`;
    return `The certificate of the event store at ${name} is not accepted (${said}); trusted is ${trusted}.`;
  }
  if (TLS.test(said))
    return `The event store at ${name} and this service don't agree on TLS (${said}).`;
  return `The event store at ${name} can't be reached (${said}).`;
}
