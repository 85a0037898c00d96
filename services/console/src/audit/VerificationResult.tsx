import { Link } from '@tanstack/react-router';
import { Check, Minus, ShieldAlert, ShieldCheck, ShieldQuestion } from 'lucide-react';
import type { ReactNode } from 'react';
import { ApiError } from '../api/apiError.ts';
import { ErrorState } from '../components/states.tsx';
import { Time } from '../components/Time.tsx';
import { Facts, Mono } from './parts.tsx';
import type { Verification } from './useVerification.ts';
import { toBase64 } from './verify/bytes.ts';
import { Mismatch } from './verify/mismatch.ts';
import type { Cosignature } from './verify/notes.ts';
import type { SignedBy } from './verify/verifySession.ts';

const count = (number: number, one: string, many = `${one}s`): string =>
  `${number.toLocaleString()} ${number === 1 ? one : many}`;

/** A statement that was proven, or that could not be. */
export const Statement = ({
  isProven,
  title,
  children,
}: {
  isProven: boolean;
  title: string;
  children: ReactNode;
}) => (
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

/** What is known about the signature of the checkpoint. */
export function SignatureStatement({
  signedBy,
  origin,
}: {
  signedBy: SignedBy | undefined;
  origin: string;
}) {
  const key = signedBy && (
    <Mono>
      {signedBy.key.name}+{signedBy.key.id}
    </Mono>
  );
  return (
    <Statement isProven={signedBy?.isTrusted === true} title="Signature">
      {signedBy?.isTrusted ? (
        <>The checkpoint is signed by {key}, a key that you trust.</>
      ) : signedBy ? (
        <>
          The checkpoint is signed by {key}, the key that the file names itself. That proves nothing
          until you compare it with the operator’s publication.
        </>
      ) : (
        <>
          Not checked: you trust no key of <Mono>{origin}</Mono>. Anybody could have made this
          checkpoint.
        </>
      )}
    </Statement>
  );
}

/** Which of the trusted witnesses cosigned the checkpoint, and when. */
export function WitnessStatement({ cosignatures }: { cosignatures: readonly Cosignature[] }) {
  const present = cosignatures.filter(({ time }) => time !== undefined);
  const missing = cosignatures.filter(({ time }) => time === undefined);
  return (
    <Statement isProven={present.length > 0 && missing.length === 0} title="Witnesses">
      {cosignatures.length === 0 &&
        'You trust no witness. With witnesses, the log can’t show others another history unnoticed.'}
      {present.map(({ name, time }) => (
        <span key={name} className="block">
          <Mono>{name}</Mono> cosigned this checkpoint at <Time value={time!} />.
        </span>
      ))}
      {missing.map(({ name }) => (
        <span key={name} className="block">
          <Mono>{name}</Mono> has not cosigned this checkpoint.
        </span>
      ))}
    </Statement>
  );
}

function Verified({ verified }: Extract<Verification, { state: 'verified' }>) {
  const { session_id, chain, checkpoint, lastLeaf, signedBy, cosignatures, pinned } = verified;
  const { disclosed, redacted, erased } = chain.texts;
  const isWhole = signedBy?.isTrusted === true && pinned !== undefined;
  const Icon = isWhole ? ShieldCheck : ShieldQuestion;
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
        <Statement isProven={disclosed > 0 || redacted + erased === 0} title="Texts">
          {count(disclosed, 'text is', 'texts are')} as recorded.
          {redacted > 0 &&
            ` ${count(redacted, 'text is', 'texts are')} withheld; only the commitment was checked.`}
          {erased > 0 && ` ${count(erased, 'text is', 'texts are')} erased.`}
        </Statement>
        <Statement isProven title="Inclusion">
          Each event is in the log under the checkpoint of {count(checkpoint.size, 'event')}; the
          last one is leaf {lastLeaf.toLocaleString()}.
        </Statement>
        <SignatureStatement signedBy={signedBy} origin={checkpoint.origin} />
        <Statement isProven={pinned !== undefined} title="Pinned checkpoint">
          {pinned ? (
            <>
              The log is the one that you pinned, of {count(pinned.checkpoint.size, 'event')}.{' '}
              {count(pinned.events, 'event')} of the session {pinned.events === 1 ? 'was' : 'were'}{' '}
              under it, and {(chain.events - pinned.events).toLocaleString()} came later.
            </>
          ) : (
            'Not compared: no checkpoint is pinned. The log could have been rewritten as a whole.'
          )}
        </Statement>
        <WitnessStatement cosignatures={cosignatures} />
      </ul>
      <p className="text-muted-foreground">
        Not shown by any proof: that the recorded content is true, that the session has not
        continued, that there is no other session, and when something happened.
      </p>
      <details>
        <summary className="text-primary">Hashes</summary>
        <div className="mt-2">
          <Facts
            facts={[
              ['Session', <Mono key="s">{session_id}</Mono>],
              ['Last event', <Mono key="h">{chain.hash}</Mono>],
              ['Root', <Mono key="r">{toBase64(checkpoint.root)}</Mono>],
            ]}
          />
        </div>
      </details>
    </section>
  );
}

/** What does not match, where, and what that means. */
export function MismatchReport({
  error,
  sessionId,
  matched,
}: {
  error: Mismatch;
  sessionId?: string | undefined;
  matched?: number | undefined;
}) {
  const { event, expected, actual, meaning } = error.details;
  return (
    <section
      role="alert"
      aria-labelledby="result-title"
      className="grid gap-3 rounded-md border border-destructive/60 p-4"
    >
      <div className="flex items-center gap-3">
        <ShieldAlert className="size-6 shrink-0 text-destructive" aria-hidden />
        <h3 id="result-title" className="font-semibold break-words text-destructive">
          {error.message}
        </h3>
      </div>
      <p>{meaning}</p>
      <Facts
        facts={[
          ...(event
            ? ([
                ['Revision', event.revision],
                ['Type', <Mono key="type">{event.type}</Mono>],
                [
                  'Time',
                  Number.isNaN(Date.parse(event.time)) ? (
                    event.time
                  ) : (
                    <Time key="time" value={event.time} />
                  ),
                ],
              ] as const)
            : []),
          ...(expected === undefined
            ? []
            : [['Expected', <Mono key="expected">{expected}</Mono>] as const]),
          ...(actual === undefined
            ? []
            : [['Actual', <Mono key="actual">{actual}</Mono>] as const]),
        ]}
      />
      {matched !== undefined && event && (
        <p className="text-muted-foreground">
          {matched === 0 ? 'It is the first event.' : `${count(matched, 'event')} before it match.`}
        </p>
      )}
      {sessionId !== undefined && (
        <Link
          to="/sessions/$sessionId"
          params={{ sessionId }}
          search={event ? { tab: 'events', event: event.revision } : {}}
          className="justify-self-start text-primary underline"
        >
          {event ? 'Open the event' : 'Open the session'}
        </Link>
      )}
    </section>
  );
}

const damaged = ({ message }: ApiError): Mismatch =>
  new Mismatch(message, {
    meaning:
      'The service found this itself, and proves nothing for this session. The operator can compare the whole log: npm run cli -- audit verify.',
  });

/** The outcome of a verification. */
export function VerificationResult({ verification }: { verification: Verification }) {
  if (verification.state === 'verified') return <Verified {...verification} />;
  if (verification.state !== 'failed') return null;
  const { error, target, events } = verification;
  const sessionId = target.kind === 'session' ? target.session_id : undefined;
  if (error instanceof Mismatch)
    return <MismatchReport error={error} sessionId={sessionId} matched={events} />;
  if (error instanceof ApiError && error.code === 'stream_damaged')
    return <MismatchReport error={damaged(error)} sessionId={sessionId} />;
  return <ErrorState error={error} />;
}
