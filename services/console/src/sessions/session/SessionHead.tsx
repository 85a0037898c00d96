import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { MessageSquare, Repeat2, ShieldCheck, Square } from 'lucide-react';
import { useAgentNames } from '../../agents/agentQueries.ts';
import { api, dataOf, type Schema } from '../../api/client.ts';
import { Button, LinkButton } from '../../components/Button.tsx';
import { Alert, Badge, Facts, Time } from '../../components/view.tsx';
import { SessionLink } from '../SessionLink.tsx';
import { shortId } from '../SessionRow.tsx';
import { formatNumber } from './format.ts';

const LINK = 'text-primary hover:underline';

/** Status, agent, times and labels of a session. */
export function SessionFacts({ session }: { session: Schema<'Transcript'> }) {
  const agents = useAgentNames();
  const { agent_id, forked_from, replay, status } = session;
  const labels = Object.entries(session.labels);
  return (
    <div className="grid gap-1.5 border-b px-4 py-2 text-xs md:px-6">
      <Facts
        className="flex flex-wrap gap-y-1 *:flex *:items-baseline *:gap-1.5"
        facts={[
          ['Status', status === 'running' ? <Badge tone="success">Running</Badge> : 'Idle'],
          [
            'Agent',
            <Link to="/sessions" search={{ agent_id }} className={LINK}>
              {agents.get(agent_id) ?? agent_id}
            </Link>,
          ],
          ['Turns', formatNumber(session.turn_count)],
          ['Began', <Time value={session.created_at} />],
          ['Last event', <Time value={session.updated_at} />],
          forked_from && [
            'Fork of',
            <SessionLink
              id={forked_from.session_id}
              search={{ turn: forked_from.turn }}
              className={LINK}
            >
              {shortId(forked_from.session_id)} at turn {forked_from.turn}
            </SessionLink>,
          ],
          replay && [
            'Replay of',
            <SessionLink id={replay.session_id} className={LINK}>
              {shortId(replay.session_id)}
            </SessionLink>,
          ],
          labels.length > 0 && [
            'Labels',
            labels.map(([name, value]) => (
              <Link key={name} to="/sessions" search={{ label: [`${name}:${value}`] }}>
                <Badge className="mr-1 max-w-full truncate hover:bg-accent">
                  {name}: {value}
                </Badge>
              </Link>
            )),
          ],
          ['Id', <code>{session.session_id}</code>],
        ]}
      />
      {forked_from?.erased && (
        <p className="text-warning">
          Turns that this fork shares were erased. The transcript begins after them.
        </p>
      )}
    </div>
  );
}

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
  return (
    <>
      {cancel.error && <Alert title={cancel.error.message} />}
      {status === 'running' && (
        <Button
          size="small"
          variant="destructive"
          disabled={cancel.isPending}
          onClick={() => cancel.mutate()}
        >
          <Square aria-hidden /> Cancel turn
        </Button>
      )}
      {!session.replay && (
        <LinkButton
          size="small"
          to="/chat/$agentId"
          params={{ agentId: agent_id }}
          search={{ sessions: session_id }}
        >
          <MessageSquare aria-hidden /> Continue in chat
        </LinkButton>
      )}
      <LinkButton size="small" to="/replays/new" search={{ session: session_id }}>
        <Repeat2 aria-hidden /> Replay
      </LinkButton>
      <LinkButton size="small" to="/audit" search={{ session: session_id }}>
        <ShieldCheck aria-hidden /> Verify
      </LinkButton>
    </>
  );
}
