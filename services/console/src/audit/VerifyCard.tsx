import { useMutation } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { Check, Minus, ShieldCheck, ShieldQuestion } from 'lucide-react';
import { useEffect, useRef, useState, type FormEvent, type ReactNode } from 'react';
import { ApiError } from '../api/apiError.ts';
import { Button } from '../components/Button.tsx';
import { TextField } from '../components/Field.tsx';
import { Alert, Card, ErrorState, Facts, Time } from '../components/view.tsx';
import { SessionLink } from '../sessions/SessionLink.tsx';
import { useKeyDown } from '../shell/useShortcuts.ts';
import { Hash } from './checkpoints.tsx';
import { readTree, sessionFromService } from './service.ts';
import { useTrust } from './trust.ts';
import { toBase64 } from './verify/bytes.ts';
import { Mismatch, type MismatchDetails } from './verify/mismatch.ts';
import { checkpointVerifier, verifySession } from './verify/verifySession.ts';
import type { Trust, VerifiedSession } from './verify/verifySession.ts';

const SESSION_ID = /^session_[0-9a-hjkmnp-tv-z]{26}$/;
const PROGRESS_MS = 100;

/** A session to verify, against what the person trusts at that time. */
interface Subject {
  session_id: string;
  trust: Trust;
}

const count = (number: number, one: string, many = `${one}s`): string =>
  `${number.toLocaleString()} ${number === 1 ? one : many}`;

/** A statement that was proven, or that could not be. */
const Statement = (props: { isProven: boolean; title: string; children: ReactNode }) => (
  <li className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-3 py-2.5">
    {props.isProven ? (
      <Check className="mt-0.5 size-4 text-success" aria-label="Proven:" />
    ) : (
      <Minus className="mt-0.5 size-4 text-warning" aria-label="Not proven:" />
    )}
    <div className="min-w-0">
      <h4 className="font-semibold">{props.title}</h4>
      <p>{props.children}</p>
    </div>
  </li>
);

function VerifiedReport({ trust, verified }: { trust: Trust; verified: VerifiedSession }) {
  const { chain, checkpoint, lastLeaf, signers, pinnedEvents } = verified;
  const { disclosed, redacted, erased } = chain.texts;
  const { pinned } = trust;
  const key = trust.keys.find(({ kind, name }) => kind === 'log' && name === checkpoint.origin);
  const isWhole = key !== undefined && pinned !== undefined;
  const Icon = isWhole ? ShieldCheck : ShieldQuestion;
  const witnesses = signers.filter(
    ({ role, status }) => role === 'Witness' && status !== 'Not checked: no key',
  );
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
          {count(chain.events, 'event')}.
        </Statement>
        <Statement isProven={redacted + erased === 0} title="Texts">
          {count(disclosed, 'text is', 'texts are')} as recorded.
          {redacted > 0 &&
            ` ${count(redacted, 'text is', 'texts are')} withheld; only the commitment was checked.`}
          {erased > 0 && ` ${count(erased, 'text is', 'texts are')} erased.`}
        </Statement>
        <Statement isProven title="Inclusion">
          Each event is in the log under the checkpoint of {count(checkpoint.size, 'event')}; the
          last one is leaf {lastLeaf.toLocaleString()}. Root:{' '}
          <Hash>{toBase64(checkpoint.root)}</Hash>
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
        <Statement isProven={witnesses.some(({ time }) => time !== undefined)} title="Witnesses">
          {witnesses.length === 0 && 'You trust no witness.'}
          {witnesses.map(({ name, time }) => (
            <span key={name} className="block">
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
    </section>
  );
}

const DAMAGED =
  'The service found this itself, and proves nothing for this session. The operator can compare the whole log: npm run cli -- audit verify.';

/** A verification that failed: what does not match, where, and what that means. */
function FailedReport({ session_id, failure }: { session_id: string; failure: Error }) {
  const isDamaged = failure instanceof ApiError && failure.code === 'stream_damaged';
  if (!(failure instanceof Mismatch) && !isDamaged) return <ErrorState error={failure} />;
  const details = isDamaged ? { meaning: DAMAGED } : (failure as Mismatch).details;
  const { event, expected, actual, meaning }: MismatchDetails = details;
  return (
    <Alert title={failure.message}>
      <p>{meaning}</p>
      <Facts
        className="md:grid-cols-2"
        facts={[
          event && ['Revision', event.revision],
          event && ['Type', event.type],
          event && ['Time', Date.parse(event.time) ? <Time value={event.time} /> : event.time],
          event && ['Events before it that match', event.revision.toLocaleString()],
          expected !== undefined && ['Expected', <Hash>{expected}</Hash>],
          actual !== undefined && ['Actual', <Hash>{actual}</Hash>],
        ]}
      />
      <SessionLink
        id={session_id}
        search={event ? { tab: 'events', event: event.revision } : {}}
        className="justify-self-start text-primary underline"
      >
        {event ? 'Open the event' : 'Open the session'}
      </SessionLink>
    </Alert>
  );
}

/** Verifies a session of the service in this browser, one at a time. */
export function VerifyCard() {
  const { session } = useSearch({ from: '/audit' });
  const navigate = useNavigate({ from: '/audit' });
  const { trust } = useTrust();
  const [text, setText] = useState('');
  const [error, setError] = useState<string>();
  const [progress, setProgress] = useState('');
  const running = useRef<AbortController>(undefined);
  const { mutate, reset, ...verification } = useMutation({
    mutationFn: ({ session_id, trust: trusted }: Subject) => {
      running.current?.abort();
      const { signal } = (running.current = new AbortController());
      let shownAt = performance.now();
      const onProgress = (done: number, total: number): void => {
        if (signal.aborted || performance.now() - shownAt < PROGRESS_MS) return;
        shownAt = performance.now();
        setProgress(`${done.toLocaleString()} of ${total.toLocaleString()} events`);
      };
      setProgress('Reading the session…');
      const accept = checkpointVerifier(trusted, readTree);
      const source = sessionFromService(session_id, signal);
      return verifySession({ ...source, trust: trusted, accept, signal, onProgress });
    },
  });
  const { isPending, variables, data: verified, error: failure } = verification;
  const stop = (): void => {
    running.current?.abort();
    reset();
  };
  useEffect(() => () => running.current?.abort(), []);
  useEffect(() => setText(session ?? ''), [session]);
  useKeyDown(({ key }) => {
    if (key === 'Escape' && isPending) stop();
  });

  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const id = text.trim();
    const isId = SESSION_ID.test(id);
    setError(isId ? undefined : 'Enter the id of a session: session_ and 26 characters.');
    if (!isId || !trust) return;
    void navigate({ search: { session: id } });
    mutate({ session_id: id, trust });
  };

  return (
    <Card title="Verify a session" className="lg:col-span-2">
      <form onSubmit={submit} className="flex flex-wrap items-start gap-x-3 gap-y-4">
        <div className="min-w-0 flex-1 basis-72">
          <TextField
            label="Session"
            error={error}
            hint="This browser recomputes the hash chain and the inclusion of every event."
            data-search
            className="font-mono"
            placeholder="session_…"
            spellCheck={false}
            value={text}
            onValue={setText}
          />
        </div>
        {isPending ? (
          <Button className="sm:mt-6.5" onClick={stop}>
            Stop
          </Button>
        ) : (
          <Button variant="primary" type="submit" className="sm:mt-6.5" disabled={!trust}>
            Verify
          </Button>
        )}
      </form>
      <div aria-live="polite">
        {isPending && <p className="tabular-nums">{progress}</p>}
        {verified && <VerifiedReport trust={variables.trust} verified={verified} />}
        {failure && <FailedReport session_id={variables.session_id} failure={failure} />}
      </div>
    </Card>
  );
}
