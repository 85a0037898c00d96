import { useQuery } from '@tanstack/react-query';
import { FileUp } from 'lucide-react';
import { useEffect, useId, useState, type DragEvent, type FormEvent } from 'react';
import { api, pageOf } from '../api/client.ts';
import { Button } from '../components/Button.tsx';
import { Field, Input } from '../components/Field.tsx';
import { Card } from '../components/layout.tsx';
import { useTrust } from './trust.ts';
import { useVerification, type VerificationTarget } from './useVerification.ts';
import { VerificationResult } from './VerificationResult.tsx';

const SESSION_ID = /^session_[0-9a-hjkmnp-tv-z]{26}$/;
const SUGGESTIONS = 20;

interface VerifyCardProps {
  /** From the address. */
  sessionId: string | undefined;
  onSelect: (sessionId: string) => void;
}

function Progress({ events, total }: { events: number; total: number }) {
  return (
    <div className="grid gap-1.5">
      <div
        role="progressbar"
        aria-label="Verified events"
        aria-valuemin={0}
        aria-valuemax={total}
        aria-valuenow={events}
        className="h-1.5 overflow-hidden rounded-full bg-muted"
      >
        <div
          className="h-full rounded-full bg-primary"
          style={{ width: `${(100 * events) / Math.max(total, 1)}%` }}
        />
      </div>
      <p className="text-muted-foreground tabular-nums">
        {events.toLocaleString()} of {total === 0 ? '…' : total.toLocaleString()} events
      </p>
    </div>
  );
}

/** Verifies a session of the service, or a bundle, in this browser. */
export function VerifyCard({ sessionId, onSelect }: VerifyCardProps) {
  const [text, setText] = useState(sessionId ?? '');
  const [error, setError] = useState<string>();
  const { trust } = useTrust();
  const { verification, verify, stop } = useVerification();
  const listId = useId();
  const isRunning = verification.state === 'running';
  const recent = useQuery({
    queryKey: ['sessions', 'to-verify'],
    queryFn: () => pageOf(api.GET('/v1/sessions', { params: { query: { limit: SUGGESTIONS } } })),
  });

  useEffect(() => setText(sessionId ?? ''), [sessionId]);
  useEffect(() => {
    if (!isRunning) return undefined;
    const onKey = (event: KeyboardEvent): void => {
      if (event.key === 'Escape') stop();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  });

  const start = (target: VerificationTarget): void => {
    if (trust) void verify(target, trust);
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const session_id = text.trim();
    const isId = SESSION_ID.test(session_id);
    setError(isId ? undefined : 'Enter the id of a session: session_ and 26 characters.');
    if (!isId) return;
    onSelect(session_id);
    start({ kind: 'session', session_id });
  };
  const openFile = (file: File | undefined): void => {
    if (file) start({ kind: 'bundle', file });
  };
  const drop = (event: DragEvent): void => {
    event.preventDefault();
    openFile(event.dataTransfer.files[0]);
  };

  return (
    <Card
      aria-labelledby="verify-title"
      className="grid gap-4 lg:col-span-2"
      onDragOver={(event) => event.preventDefault()}
      onDrop={drop}
    >
      <div>
        <h2 id="verify-title" className="text-base font-semibold">
          Verify a session
        </h2>
        <p className="text-muted-foreground">
          This browser recomputes the hash chain and the inclusion of every event.
        </p>
      </div>
      <form onSubmit={submit} className="flex flex-wrap items-start gap-x-3 gap-y-4">
        <div className="min-w-0 flex-1 basis-72">
          <Field label="Session" error={error} hint="Or drop a bundle file here.">
            <Input
              data-search
              className="font-mono"
              list={listId}
              placeholder="session_…"
              spellCheck={false}
              value={text}
              onChange={(event) => setText(event.target.value)}
            />
          </Field>
          <datalist id={listId}>
            {recent.data?.rows.map(({ session_id }) => (
              <option key={session_id} value={session_id} />
            ))}
          </datalist>
        </div>
        <div className="flex flex-wrap gap-2 sm:mt-6.5">
          {isRunning ? (
            <Button variant="outline" onClick={stop}>
              Stop
            </Button>
          ) : (
            <Button type="submit" disabled={!trust}>
              Verify
            </Button>
          )}
          <Button asChild variant="outline">
            <label className="cursor-pointer focus-within:outline-2 focus-within:outline-offset-2 focus-within:outline-ring">
              <FileUp aria-hidden /> Open a bundle
              <input
                type="file"
                accept=".tar,application/x-tar"
                className="sr-only"
                onChange={(event) => {
                  openFile(event.target.files?.[0]);
                  event.target.value = '';
                }}
              />
            </label>
          </Button>
        </div>
      </form>
      <div aria-live="polite">
        {isRunning ? (
          <Progress events={verification.events} total={verification.total} />
        ) : (
          <VerificationResult verification={verification} />
        )}
      </div>
    </Card>
  );
}
