import { useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect, useRef, useState, type FormEvent } from 'react';
import { Button } from '../components/Button.tsx';
import { TextField } from '../components/Field.tsx';
import { Card } from '../components/layout.tsx';
import { readTree, sessionFromService } from './service.ts';
import { useTrust } from './trust.ts';
import { VerificationResult, type Outcome } from './VerificationResult.tsx';
import { checkpointVerifier, verifySession, type Trust } from './verify/verifySession.ts';

const SESSION_ID = /^session_[0-9a-hjkmnp-tv-z]{26}$/;
const PROGRESS_MS = 100;

/** Verifies a session of the service in this browser, one at a time. */
export function VerifyCard() {
  const { session } = useSearch({ from: '/audit' });
  const navigate = useNavigate({ from: '/audit' });
  const { trust } = useTrust();
  const [text, setText] = useState('');
  const [error, setError] = useState<string>();
  const [progress, setProgress] = useState<{ events: number; total: number }>();
  const [outcome, setOutcome] = useState<Outcome>();
  const running = useRef<AbortController>(undefined);
  const stop = (): void => {
    running.current?.abort();
    setProgress(undefined);
  };
  useEffect(() => () => running.current?.abort(), []);
  useEffect(() => setText(session ?? ''), [session]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key === 'Escape') stop();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);

  async function verify(session_id: string, trusted: Trust): Promise<void> {
    stop();
    const controller = new AbortController();
    running.current = controller;
    const { signal } = controller;
    let events = 0;
    let shownAt = performance.now();
    const onProgress = (done: number, total: number): void => {
      events = done;
      if (signal.aborted || performance.now() - shownAt < PROGRESS_MS) return;
      shownAt = performance.now();
      setProgress({ events, total });
    };
    setOutcome(undefined);
    setProgress({ events, total: 0 });
    const accept = checkpointVerifier(trusted, readTree);
    const source = sessionFromService(session_id, signal);
    const ended = await verifySession({
      ...source,
      trust: trusted,
      accept,
      signal,
      onProgress,
    }).then(
      (verified) => ({ verified }),
      (failure: unknown) => ({ failure }),
    );
    if (signal.aborted) return;
    setProgress(undefined);
    setOutcome({ session_id, trust: trusted, events, ...ended });
  }

  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const id = text.trim();
    const isId = SESSION_ID.test(id);
    setError(isId ? undefined : 'Enter the id of a session: session_ and 26 characters.');
    if (!isId || !trust) return;
    void navigate({ search: { session: id } });
    void verify(id, trust);
  };

  return (
    <Card aria-labelledby="verify-title" className="grid gap-4 lg:col-span-2">
      <h2 id="verify-title" className="text-base font-semibold">
        Verify a session
      </h2>
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
        {progress ? (
          <Button variant="outline" className="sm:mt-6.5" onClick={stop}>
            Stop
          </Button>
        ) : (
          <Button type="submit" className="sm:mt-6.5" disabled={!trust}>
            Verify
          </Button>
        )}
      </form>
      <div aria-live="polite">
        {progress && (
          <p className="tabular-nums">
            {progress.events.toLocaleString()} of {progress.total.toLocaleString()} events
          </p>
        )}
        {outcome && <VerificationResult {...outcome} />}
      </div>
    </Card>
  );
}
