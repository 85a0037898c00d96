import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Download, MessageSquare, Repeat2, ShieldCheck, Square } from 'lucide-react';
import { useState } from 'react';
import { api, apiFetch, dataOf, type Schema } from '../../api/client.ts';
import { Button } from '../../components/Button.tsx';
import { Dialog } from '../../components/Dialog.tsx';

const Problem = ({ error }: { error: Error | null }) =>
  error && (
    <p role="alert" className="text-destructive">
      {error.message}
    </p>
  );

/** What a session can be downloaded as: the name, the path of the request, the end of the file. */
const DOWNLOADS = [
  ['Report (HTML)', 'report', 'report.html'],
  ['Events (JSON lines)', 'export?format=events', 'events.jsonl'],
  ['OpenAI chat', 'export?format=openai-chat', 'openai-chat.jsonl'],
  ['OpenTelemetry', 'export?format=otel', 'otel.jsonl'],
  ['Inspect AI', 'export?format=inspect', 'inspect.jsonl'],
  ['ATIF', 'export?format=atif', 'atif.jsonl'],
] as const;

/** Downloads a session in a format of the reader's choice. */
function DownloadDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const save = useMutation({
    // A link could not send the key.
    mutationFn: async ([, path, file]: (typeof DOWNLOADS)[number]) => {
      const request = new Request(new URL(`/v1/sessions/${id}/${path}`, location.origin));
      const href = URL.createObjectURL(await (await apiFetch(request)).blob());
      const download = `${id}-${file}`;
      Object.assign(document.createElement('a'), { href, download }).click();
      URL.revokeObjectURL(href);
    },
    onSuccess: onClose,
  });
  return (
    <Dialog title="Download" isOpen onClose={onClose}>
      <div className="grid gap-2 sm:grid-cols-2">
        {DOWNLOADS.map((each) => (
          <Button
            key={each[0]}
            variant="outline"
            disabled={save.isPending}
            onClick={() => save.mutate(each)}
          >
            {each[0]}
          </Button>
        ))}
        <Problem error={save.error} />
      </div>
    </Dialog>
  );
}

/** What can be done with a session. */
export function SessionActions({ session }: { session: Schema<'Transcript'> }) {
  const { session_id, agent_id, status, turn_count } = session;
  const client = useQueryClient();
  const [isDownloading, setDownloading] = useState(false);
  const cancel = useMutation({
    mutationFn: () => {
      const params = { path: { sessionId: session_id } };
      const body = { turn: turn_count };
      return dataOf(api.POST('/v1/sessions/{sessionId}/cancel', { params, body }));
    },
    onSettled: () => client.invalidateQueries({ queryKey: ['session', session_id] }),
  });
  const look = { variant: 'outline', size: 'small' } as const;
  return (
    <>
      <Problem error={cancel.error} />
      {status === 'running' && (
        <Button
          {...look}
          variant="destructive"
          disabled={cancel.isPending}
          onClick={() => cancel.mutate()}
        >
          <Square aria-hidden /> Cancel turn
        </Button>
      )}
      {!session.replay && (
        <Button asChild {...look}>
          <Link
            to="/chat/$agentId"
            params={{ agentId: agent_id }}
            search={{ sessions: session_id }}
          >
            <MessageSquare aria-hidden /> Continue in chat
          </Link>
        </Button>
      )}
      <Button asChild {...look}>
        <Link to="/replays/new" search={{ session: session_id }}>
          <Repeat2 aria-hidden /> Replay
        </Link>
      </Button>
      <Button asChild {...look}>
        <Link to="/audit" search={{ session: session_id }}>
          <ShieldCheck aria-hidden /> Verify
        </Link>
      </Button>
      <Button {...look} onClick={() => setDownloading(true)}>
        <Download aria-hidden /> Download
      </Button>
      {isDownloading && <DownloadDialog id={session_id} onClose={() => setDownloading(false)} />}
    </>
  );
}
