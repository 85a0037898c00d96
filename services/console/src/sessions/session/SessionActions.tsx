import { useMutation, useQueryClient } from '@tanstack/react-query';
import { MessageSquare, Repeat2, ShieldCheck, Square } from 'lucide-react';
import { api, dataOf, type Schema } from '../../api/client.ts';
import { Button, LinkButton } from '../../components/Button.tsx';
import { Alert } from '../../components/view.tsx';

/** The actions on a session. */
export function SessionActions({ session }: { session: Schema<'Transcript'> }) {
  const { session_id, agent_id, status, turn_count } = session;
  const client = useQueryClient();
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
      {cancel.error && <Alert title={cancel.error.message} />}
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
        <LinkButton
          {...look}
          to="/chat/$agentId"
          params={{ agentId: agent_id }}
          search={{ sessions: session_id }}
        >
          <MessageSquare aria-hidden /> Continue in chat
        </LinkButton>
      )}
      <LinkButton {...look} to="/replays/new" search={{ session: session_id }}>
        <Repeat2 aria-hidden /> Replay
      </LinkButton>
      <LinkButton {...look} to="/audit" search={{ session: session_id }}>
        <ShieldCheck aria-hidden /> Verify
      </LinkButton>
    </>
  );
}
