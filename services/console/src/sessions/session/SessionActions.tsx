import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { ChevronDown, MessageSquare, Pencil, Repeat2, ShieldCheck, Square } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import { api, apiFetch, dataOf, type Schema } from '../../api/client.ts';
import { Button } from '../../components/Button.tsx';
import { EditDialog } from './EditDialog.tsx';

/** What a session can be downloaded as. */
const DOWNLOADS = [
  { label: 'Report (HTML)', path: 'report', file: 'report.html' },
  { label: 'Events (JSON lines)', path: 'export?format=events', file: 'events.jsonl' },
  { label: 'OpenAI chat', path: 'export?format=openai-chat', file: 'openai-chat.jsonl' },
  { label: 'OpenTelemetry', path: 'export?format=otel', file: 'otel.jsonl' },
  { label: 'Inspect AI', path: 'export?format=inspect', file: 'inspect.jsonl' },
  { label: 'ATIF', path: 'export?format=atif', file: 'atif.jsonl' },
] as const;

/** Saves the answer of a GET request as a file. A link could not send the key. */
async function download(path: string, file: string): Promise<void> {
  const response = await apiFetch(new Request(new URL(path, location.origin)));
  const url = URL.createObjectURL(await response.blob());
  const link = document.createElement('a');
  Object.assign(link, { href: url, download: file });
  link.click();
  URL.revokeObjectURL(url);
}

/** The formats that a session can be downloaded in. */
function DownloadMenu({ sessionId }: { sessionId: string }) {
  const menu = useRef<HTMLDetailsElement>(null);
  const { mutate, isPending, error } = useMutation({
    mutationFn: ({ path, file }: (typeof DOWNLOADS)[number]) =>
      download(`/v1/sessions/${sessionId}/${path}`, `${sessionId}-${file}`),
  });
  useEffect(() => {
    const close = (event: Event): void => {
      const isEscape = event instanceof KeyboardEvent && event.key === 'Escape';
      const isOutside = event.type === 'click' && !menu.current?.contains(event.target as Node);
      if (menu.current && (isEscape || isOutside)) menu.current.open = false;
    };
    addEventListener('click', close);
    addEventListener('keydown', close);
    return () => {
      removeEventListener('click', close);
      removeEventListener('keydown', close);
    };
  }, []);
  return (
    <details ref={menu} className="relative">
      <summary className="flex h-8 list-none items-center gap-2 rounded-md border border-input/60 px-3 font-medium hover:bg-muted">
        {isPending ? 'Downloading…' : 'Download'} <ChevronDown className="size-4" aria-hidden />
      </summary>
      <div className="absolute top-full left-0 z-20 mt-1 grid w-52 rounded-md border bg-card p-1 shadow-lg md:right-0 md:left-auto">
        {DOWNLOADS.map((each) => (
          <Button
            key={each.file}
            variant="ghost"
            size="small"
            className="justify-start"
            disabled={isPending}
            onClick={() => {
              menu.current!.open = false;
              mutate(each);
            }}
          >
            {each.label}
          </Button>
        ))}
      </div>
      {error && (
        <p
          role="alert"
          className="absolute top-full right-0 z-10 mt-1 w-64 rounded-md border bg-card p-2 text-destructive"
        >
          {error.message}
        </p>
      )}
    </details>
  );
}

/** What can be done with a session. */
export function SessionActions({ session }: { session: Schema<'Transcript'> }) {
  const { session_id, agent_id, status, turn_count } = session;
  const client = useQueryClient();
  const [isEditing, setEditing] = useState(false);
  const cancel = useMutation({
    mutationFn: () =>
      dataOf(
        api.POST('/v1/sessions/{sessionId}/cancel', {
          params: { path: { sessionId: session_id } },
          body: { turn: turn_count },
        }),
      ),
    onSettled: () => client.invalidateQueries({ queryKey: ['session', session_id] }),
  });
  return (
    <>
      {cancel.error && (
        <p role="alert" className="text-destructive">
          {cancel.error.message}
        </p>
      )}
      {status === 'running' && (
        <Button
          variant="destructive"
          size="small"
          disabled={cancel.isPending}
          onClick={() => cancel.mutate()}
        >
          <Square aria-hidden /> {cancel.isPending ? 'Cancelling…' : 'Cancel turn'}
        </Button>
      )}
      {!session.replay && (
        <Button asChild variant="outline" size="small">
          <Link
            to="/chat/$agentId"
            params={{ agentId: agent_id }}
            search={{ sessions: session_id }}
          >
            <MessageSquare aria-hidden /> Continue in chat
          </Link>
        </Button>
      )}
      <Button asChild variant="outline" size="small">
        <Link to="/replays/new" search={{ session: session_id }}>
          <Repeat2 aria-hidden /> Replay
        </Link>
      </Button>
      <Button asChild variant="outline" size="small">
        <Link to="/audit" search={{ session: session_id }}>
          <ShieldCheck aria-hidden /> Verify
        </Link>
      </Button>
      <Button variant="outline" size="small" onClick={() => setEditing(true)}>
        <Pencil aria-hidden /> Edit
      </Button>
      <DownloadMenu sessionId={session_id} />
      {isEditing && <EditDialog session={session} onClose={() => setEditing(false)} />}
    </>
  );
}
