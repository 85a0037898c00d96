import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useRef } from 'react';
import { agentQuery } from '../agents/agentQueries.ts';
import type { Schema } from '../api/client.ts';
import { Button, LinkButton } from '../components/Button.tsx';
import { Loaded, View } from '../components/view.tsx';
import { isNewPane, MOST_PANES, nextNewPane, panesOf, searchOf } from './panes.ts';
import { SessionPane } from './SessionPane.tsx';

const route = getRouteApi('/chat/$agentId');

const labelOf = (pane: string): string =>
  isNewPane(pane) ? 'New session' : `Session …${pane.slice(-6)}`;

/**
 * The keys of the panes. A pane stays the same component when its session starts and replaces the
 * name of the new one; if that name is used again, it is another pane.
 */
function usePaneKeys() {
  const keys = useRef(new Map<string, string>());
  const keyOf = (pane: string): string => {
    const taken = new Set(keys.current.values());
    let key = pane;
    while (taken.has(key)) key += '+';
    return keys.current.get(pane) ?? key;
  };
  const begin = (pane: string, sessionId: string) => keys.current.set(sessionId, keyOf(pane));
  return [keyOf, begin] as const;
}

function Panes({ agent }: { agent: Schema<'AgentDetail'> }) {
  const panes = panesOf(route.useSearch());
  const navigate = route.useNavigate();
  const [keyOf, beginAs] = usePaneKeys();
  const go = (next: readonly string[], replace = false): void =>
    void navigate({ search: searchOf(next), replace });
  const begin = (pane: string) => (sessionId: string) => {
    beginAs(pane, sessionId);
    go(panes.with(panes.indexOf(pane), sessionId), true);
  };
  const isFull = panes.length >= MOST_PANES;
  const actions = (
    <>
      {isFull && (
        <p className="text-xs text-muted-foreground">{MOST_PANES} sessions fit side by side.</p>
      )}
      <Button disabled={isFull} onClick={() => go([...panes, nextNewPane(panes)])}>
        New session
      </Button>
      <LinkButton to="/agents/$agentId" params={{ agentId: agent.agent_id }}>
        Agent
      </LinkButton>
    </>
  );
  return (
    <View
      title={`Chat with ${agent.name}`}
      className="flex flex-col overflow-hidden p-0 md:p-0"
      actions={actions}
    >
      {/* On a phone a session has the width, and the next one, whose edge shows, is a swipe away. */}
      <div className="flex min-h-0 flex-1 snap-x snap-mandatory overflow-x-auto">
        {panes.map((pane) => (
          <SessionPane
            key={keyOf(pane)}
            agent={agent}
            sessionId={isNewPane(pane) ? undefined : pane}
            label={labelOf(pane)}
            onSession={begin(pane)}
            onClose={panes.length > 1 ? () => go(panes.filter((each) => each !== pane)) : undefined}
          />
        ))}
      </div>
    </View>
  );
}

/** Conversations with one agent, side by side. */
export function ChatView() {
  const { agentId } = route.useParams();
  const query = useQuery(agentQuery(agentId));
  if (query.data) return <Panes key={agentId} agent={query.data.agent} />;
  return (
    <View title="Chat">
      <Loaded query={query}>{() => null}</Loaded>
    </View>
  );
}
