import { Link } from '@tanstack/react-router';
import { Check, Minus, ShieldAlert, ShieldCheck, ShieldQuestion } from 'lucide-react';
import type { ReactNode } from 'react';
import { ApiError } from '../api/apiError.ts';
import { ErrorState } from '../components/states.tsx';
import { Time } from '../components/Time.tsx';
import { Facts } from '../components/tables.tsx';
import { Hash } from './Hash.tsx';
import { toBase64 } from './verify/bytes.ts';
import { Mismatch } from './verify/mismatch.ts';
import type { Trust, VerifiedSession } from './verify/verifySession.ts';

interface Verified {
  session_id: string;
  trust: Trust;
  verified: VerifiedSession;
}

interface Failed {
  session_id: string;
  failure: unknown;
  /** How many events matched. */
  events: number;
}

/** How a verification ended. */
export type Outcome = Verified | Failed;

const count = (number: number, one: string, many = `${one}s`): string =>
  `${number.toLocaleString()} ${number === 1 ? one : many}`;

interface StatementProps {
  isProven: boolean;
  title: string;
  children: ReactNode;
}

/** A statement that was proven, or that could not be. */
const Statement = ({ isProven, title, children }: StatementProps) => (
  <li className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-3 py-2.5">
    {isProven ? (
      <Check className="mt-0.5 size-4 text-success" aria-label="Proven:" />
    ) : (
      <Minus className="mt-0.5 size-4 text-warning" aria-label="Not proven:" />
    )}
    <div className="min-w-0">
      <h4 className="font-semibold">{title}</h4>
      <p>{children}</p>
    </div>
  </li>
);

function VerifiedReport({ trust, verified }: Verified) {
  const { chain, checkpoint, lastLeaf, cosignatures, pinnedEvents } = verified;
  const { disclosed, redacted, erased } = chain.texts;
  const { pinned } = trust;
  const key = trust.keys.find(({ kind, name }) => kind === 'log' && name === checkpoint.origin);
  const isWhole = key !== undefined && pinned !== undefined;
  const Icon = isWhole ? ShieldCheck : ShieldQuestion;
  const hidden = redacted + erased;
  return (
    <section aria-labelledby="result-title" className="grid gap-3">
      <div className="flex items-center gap-3">
        <Icon className={isWhole ? 'size-6 text-success' : 'size-6 text-warning'} aria-hidden />
        <h3 id="result-title" className="font-semibold">
          {isWhole ? 'Everything matches' : 'Everything that could be checked matches'}
        </h3>
      </div>
      <ul className="divide-y border-y">
        <Statement isProven title="Hash chain">
          No event of the session was changed, dropped, added or moved:{' '}
          {count(chain.events, 'event')}, recorded from <Time value={chain.firstTime} /> to{' '}
          <Time value={chain.lastTime} /> by the service’s clock.
        </Statement>
        <Statement isProven={hidden === 0} title="Texts">
          {count(disclosed, 'text is', 'texts are')} as recorded.
          {redacted > 0 &&
            ` ${count(redacted, 'text is', 'texts are')} withheld; only the commitment was checked.`}
          {erased > 0 && ` ${count(erased, 'text is', 'texts are')} erased.`}
        </Statement>
        <Statement isProven title="Inclusion">
          Each event is in the log under the checkpoint of {count(checkpoint.size, 'event')}; the
          last one is leaf {lastLeaf.toLocaleString()}.
        </Statement>
        <Statement isProven={key !== undefined} title="Signature">
          {key
            ? 'You trust the key that signed the checkpoint: '
            : 'Not checked: you trust no key of '}
          <Hash>{key ? `${key.name}+${key.id}` : checkpoint.origin}</Hash>.
        </Statement>
        <Statement isProven={pinned !== undefined} title="Pinned checkpoint">
          {pinned
            ? `The log extends the one that you pinned, of ${count(pinned.size, 'event')}. ${count(pinnedEvents, 'event')} of the session ${pinnedEvents === 1 ? 'was' : 'were'} under it, and ${chain.events - pinnedEvents} came later.`
            : 'Not compared: no checkpoint is pinned. The log could have been rewritten as a whole.'}
        </Statement>
        <Statement isProven={cosignatures.some(({ time }) => time !== undefined)} title="Witnesses">
          {cosignatures.length === 0 && 'You trust no witness.'}
          {cosignatures.map(({ name, id, time }) => (
            <span key={id} className="block">
              <Hash>{name}</Hash>{' '}
              {time === undefined
                ? 'has not cosigned this checkpoint.'
                : 'cosigned this checkpoint at '}
              {time !== undefined && <Time value={time} />}
            </span>
          ))}
        </Statement>
      </ul>
      <p className="text-muted-foreground">
        Not shown by any proof: that the recorded content is true, that the session has not
        continued, that there is no other session, and when something happened.
      </p>
      <Facts
        className="md:grid-cols-2"
        facts={[
          ['Hash of the last event', <Hash key="hash">{chain.hash}</Hash>],
          ['Root of the log', <Hash key="root">{toBase64(checkpoint.root)}</Hash>],
        ]}
      />
    </section>
  );
}

const damaged = ({ message }: ApiError): Mismatch =>
  new Mismatch(message, {
    meaning:
      'The service found this itself, and proves nothing for this session. The operator can compare the whole log: npm run cli -- audit verify.',
  });

/** What does not match, where, and what that means. */
function MismatchReport({ failure, session_id, events }: Failed & { failure: Mismatch }) {
  const { event, expected, actual, meaning } = failure.details;
  return (
    <section
      role="alert"
      aria-labelledby="result-title"
      className="grid gap-3 rounded-md border border-destructive/60 p-4"
    >
      <div className="flex items-center gap-3">
        <ShieldAlert className="size-6 shrink-0 text-destructive" aria-hidden />
        <h3 id="result-title" className="font-semibold break-words text-destructive">
          {failure.message}
        </h3>
      </div>
      <p>{meaning}</p>
      <Facts
        className="md:grid-cols-3"
        facts={[
          event && ['Revision', event.revision],
          event && ['Type', event.type],
          event && ['Time', Date.parse(event.time) ? <Time value={event.time} /> : event.time],
        ]}
      />
      <Facts
        className="grid-cols-1 md:grid-cols-1"
        facts={[
          expected !== undefined && ['Expected', <Hash key="expected">{expected}</Hash>],
          actual !== undefined && ['Actual', <Hash key="actual">{actual}</Hash>],
        ]}
      />
      {event && <p className="text-muted-foreground">{count(events, 'event')} before it match.</p>}
      <Link
        to="/sessions/$sessionId"
        params={{ sessionId: session_id }}
        search={event ? { tab: 'events', event: event.revision } : {}}
        className="justify-self-start text-primary underline"
      >
        {event ? 'Open the event' : 'Open the session'}
      </Link>
    </section>
  );
}

/** The outcome of a verification. */
export function VerificationResult(outcome: Outcome) {
  if ('verified' in outcome) return <VerifiedReport {...outcome} />;
  const { failure } = outcome;
  if (failure instanceof Mismatch) return <MismatchReport {...outcome} failure={failure} />;
  if (failure instanceof ApiError && failure.code === 'stream_damaged')
    return <MismatchReport {...outcome} failure={damaged(failure)} />;
  return <ErrorState error={failure} />;
}
