import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Schema } from '../../api/client.ts';
import { Badge } from '../../components/layout.tsx';
import { Time } from '../../components/Time.tsx';
import { shortId } from '../SessionRow.tsx';
import { agentName, useAgents } from '../useAgents.ts';
import { formatNumber } from './format.ts';

const LINK = 'text-primary hover:underline [overflow-wrap:anywhere]';

const Fact = ({ name, children }: { name: string; children: ReactNode }) => (
  <div className="flex min-w-0 items-baseline gap-1.5">
    <dt className="text-muted-foreground">{name}</dt>
    <dd className="min-w-0">{children}</dd>
  </div>
);

/** What is known of a session beside its turns. */
export function SessionFacts({ session }: { session: Schema<'Transcript'> }) {
  const agents = useAgents();
  const { agent_id, forked_from, replay } = session;
  const labels = Object.entries(session.labels);
  return (
    <div className="grid gap-1.5 border-b px-4 py-2 text-xs md:px-6">
      <dl className="flex flex-wrap gap-x-5 gap-y-1">
        <Fact name="Status">
          {session.status === 'running' ? <Badge tone="success">Running</Badge> : 'Idle'}
        </Fact>
        <Fact name="Agent">
          <Link to="/sessions" search={{ agent_id }} className={LINK}>
            {agentName(agents, agent_id)}
          </Link>
        </Fact>
        <Fact name="Turns">
          <span className="tabular-nums">{formatNumber(session.turn_count)}</span>
        </Fact>
        <Fact name="Began">
          <Time value={session.created_at} />
        </Fact>
        <Fact name="Last event">
          <Time value={session.updated_at} />
        </Fact>
        {forked_from && (
          <Fact name="Fork of">
            <Link
              to="/sessions/$sessionId"
              params={{ sessionId: forked_from.session_id }}
              search={{ turn: forked_from.turn }}
              className={LINK}
            >
              {shortId(forked_from.session_id)} at turn {forked_from.turn}
            </Link>
          </Fact>
        )}
        {replay && (
          <Fact name="Replay of">
            <Link
              to="/sessions/$sessionId"
              params={{ sessionId: replay.session_id }}
              className={LINK}
            >
              {shortId(replay.session_id)}
            </Link>
          </Fact>
        )}
        <Fact name="Id">
          <code className="[overflow-wrap:anywhere]">{session.session_id}</code>
        </Fact>
      </dl>
      {forked_from?.erased && (
        <p className="text-warning">
          Turns that this fork shares were erased. The transcript begins after them.
        </p>
      )}
      {labels.length > 0 && (
        <ul aria-label="Labels" className="flex flex-wrap gap-1">
          {labels.map(([name, value]) => (
            <li key={name} className="max-w-full">
              <Link
                to="/sessions"
                search={{ label: [`${name}:${value}`] }}
                className="block max-w-full"
              >
                <Badge className="max-w-full hover:bg-accent">
                  <span className="truncate">
                    {name}: {value}
                  </span>
                </Badge>
              </Link>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
