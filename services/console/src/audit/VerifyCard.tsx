import { useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect, useRef, useState, type FormEvent } from 'react';
import { Button } from '../components/Button.tsx';
import { TextField } from '../components/Field.tsx';
import { Card } from '../components/layout.tsx';
import { useKeyDown } from '../shell/useShortcuts.ts';
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
  const [{ progress, outcome }, setShown] = useState<{ progress?: string; outcome?: Outcome }>({});
  const running = useRef<AbortController>(undefined);
  const stop = (): void => {
    if (progress === undefined) return;
    running.current?.abort();
    setShown({});
  };
  useEffect(() => () => running.current?.abort(), []);
  useEffect(() => setText(session ?? ''), [session]);
  useKeyDown(({ key }) => {
    if (key === 'Escape') stop();
  });

  async function verify(session_id: string, trusted: Trust): Promise<void> {
    running.current?.abort();
    const { signal } = (running.current = new AbortController());
    let events = 0;
    let shownAt = performance.now();
    const onProgress = (done: number, total: number): void => {
      events = done;
      if (signal.aborted || performance.now() - shownAt < PROGRESS_MS) return;
      shownAt = performance.now();
      setShown({ progress: `${done.toLocaleString()} of ${total.toLocaleString()} events` });
    };
    setShown({ progress: 'Reading the session…' });
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
    if (!signal.aborted) setShown({ outcome: { session_id, trust: trusted, events, ...ended } });
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
        {progress === undefined ? (
          <Button type="submit" className="sm:mt-6.5" disabled={!trust}>
            Verify
          </Button>
        ) : (
          <Button variant="outline" className="sm:mt-6.5" onClick={stop}>
            Stop
          </Button>
        )}
      </form>
      <div aria-live="polite">
        {progress && <p className="tabular-nums">{progress}</p>}
        {outcome && <VerificationResult {...outcome} />}
      </div>
    </Card>
  );
}
