import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { Plus } from 'lucide-react';
import { useEffect, useRef } from 'react';
import { agentQuery } from '../agents/agentQueries.ts';
import { api, dataOf, type Schema } from '../api/client.ts';
import { Button } from '../components/Button.tsx';
import { cn } from '../components/classNames.ts';
import { Select } from '../components/Field.tsx';
import { Skeleton, View } from '../components/layout.tsx';
import { ErrorState } from '../components/states.tsx';
import { formatPanes, isNewPane, MOST_PANES, nextNewPane, parsePanes } from './panes.ts';
import { SessionPane } from './SessionPane.tsx';

const route = getRouteApi('/chat/$agentId');
const LATEST_SESSIONS = 20;

const labelOf = (pane: string): string =>
  isNewPane(pane) ? 'New session' : `Session …${pane.slice(-6)}`;

interface OpenSessionProps {
  agentId: string;
  panes: readonly string[];
  onOpen: (sessionId: string) => void;
}

/** Opens one of the latest sessions of the agent. */
function OpenSession({ agentId, panes, onOpen }: OpenSessionProps) {
  const query = { agent_id: agentId, limit: LATEST_SESSIONS };
  const sessions = useQuery({
    queryKey: ['sessions', 'chat', agentId],
    queryFn: () => dataOf(api.GET('/v1/sessions', { params: { query } })),
  });
  const others = sessions.data?.filter(({ session_id }) => !panes.includes(session_id)) ?? [];
  if (others.length === 0) return null;
  return (
    <Select
      aria-label="Open a session"
      className="w-40"
      value=""
      onChange={({ target }) => onOpen(target.value)}
    >
      <option value="">Open a session</option>
      {others.map(({ session_id, title, turn_count }) => (
        <option key={session_id} value={session_id}>
          {title ?? `…${session_id.slice(-6)}`} ({turn_count} {turn_count === 1 ? 'turn' : 'turns'})
        </option>
      ))}
    </Select>
  );
}

/**
 * The keys of the panes. A pane stays the same component when its session starts and replaces the
 * name of the new one; that name is then free for another pane.
 */
function usePaneKeys(panes: readonly string[]) {
  const keys = useRef(new Map<string, string>());
  const started = useRef(new Map<string, string>());
  const keyOf = (pane: string): string => keys.current.get(pane) ?? pane;
  useEffect(() => {
    for (const pane of panes) {
      const name = started.current.get(pane);
      if (name !== undefined) keys.current.set(name, `${name}, after ${pane}`);
      started.current.delete(pane);
    }
  });
  const rename = (name: string, sessionId: string): void => {
    keys.current.set(sessionId, keyOf(name));
    started.current.set(sessionId, name);
  };
  return { keyOf, rename };
}

function Panes({ agent }: { agent: Schema<'AgentDetail'> }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const panes = parsePanes(search.sessions);
  const shown = panes.find((pane) => pane === search.shown) ?? panes[0]!;
  const { keyOf, rename } = usePaneKeys(panes);
  const go = (next: readonly string[], nextShown: string, replace = false): void => {
    const sessions = formatPanes(next);
    const isFirst = nextShown === next[0];
    void navigate({
      search: { ...(sessions && { sessions }), ...(!isFirst && { shown: nextShown }) },
      replace,
    });
  };
  const add = (pane: string): void => go([...panes, pane], pane);
  /** Opens a session in place of a new one, if there is nothing else. */
  const open = (sessionId: string): void =>
    panes.length === 1 && isNewPane(panes[0]!) ? go([sessionId], sessionId) : add(sessionId);
  const isFull = panes.length >= MOST_PANES;
  const { agent_id: agentId, name } = agent;
  return (
    <View
      title={`Chat with ${name}`}
      className="flex flex-col overflow-hidden p-0 md:p-0"
      actions={
        <>
          {isFull ? (
            <p className="text-xs text-muted-foreground">{MOST_PANES} sessions fit side by side.</p>
          ) : (
            <>
              <OpenSession agentId={agentId} panes={panes} onOpen={open} />
              <Button variant="outline" onClick={() => add(nextNewPane(panes))}>
                <Plus aria-hidden /> New session
              </Button>
            </>
          )}
          <Button asChild variant="outline">
            <Link to="/agents/$agentId" params={{ agentId }}>
              Agent
            </Link>
          </Button>
        </>
      }
    >
      {panes.length > 1 && (
        <div
          role="group"
          aria-label="Sessions"
          className="flex gap-1 overflow-x-auto border-b px-4 py-2 md:hidden"
        >
          {panes.map((pane) => (
            <Button
              key={keyOf(pane)}
              variant="ghost"
              size="small"
              aria-pressed={pane === shown}
              className={cn(pane === shown && 'bg-accent text-accent-foreground')}
              onClick={() => go(panes, pane, true)}
            >
              {labelOf(pane)}
            </Button>
          ))}
        </div>
      )}
      <div className="flex min-h-0 flex-1 overflow-x-auto">
        {panes.map((pane) => (
          <SessionPane
            key={keyOf(pane)}
            agent={agent}
            sessionId={isNewPane(pane) ? undefined : pane}
            label={labelOf(pane)}
            isShownOnPhone={pane === shown}
            onSession={(sessionId) => {
              rename(pane, sessionId);
              const next = panes.map((each) => (each === pane ? sessionId : each));
              go(next, pane === shown ? sessionId : shown, true);
            }}
            onClose={
              panes.length > 1
                ? () => {
                    const next = panes.filter((each) => each !== pane);
                    go(next, pane === shown ? next[0]! : shown);
                  }
                : undefined
            }
          />
        ))}
      </div>
    </View>
  );
}

/** Conversations with one agent, side by side. */
export function ChatView() {
  const { agentId } = route.useParams();
  const { data, error, refetch } = useQuery(agentQuery(agentId));
  if (data) return <Panes key={agentId} agent={data.agent} />;
  return (
    <View title="Chat">
      {error ? (
        <ErrorState error={error} onRetry={() => void refetch()} />
      ) : (
        <Skeleton className="h-40" />
      )}
    </View>
  );
}
