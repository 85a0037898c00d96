import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useRef } from 'react';
import { agentQuery } from '../agents/agentQueries.ts';
import type { Schema } from '../api/client.ts';
import { Button } from '../components/Button.tsx';
import { View } from '../components/layout.tsx';
import { Loaded } from '../components/states.tsx';
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
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const panes = panesOf(search);
  const shown = panes.find((pane) => pane === search.shown) ?? panes[0]!;
  const [keyOf, beginAs] = usePaneKeys();
  const go = (next: readonly string[], nextShown: string, replace = false): void =>
    void navigate({ search: searchOf(next, nextShown), replace });
  const add = (): void => {
    const pane = nextNewPane(panes);
    go([...panes, pane], pane);
  };
  const close = (pane: string) => (): void => {
    const next = panes.filter((each) => each !== pane);
    go(next, pane === shown ? next[0]! : shown);
  };
  const begin = (pane: string) => (sessionId: string) => {
    beginAs(pane, sessionId);
    const next = panes.map((each) => (each === pane ? sessionId : each));
    go(next, pane === shown ? sessionId : shown, true);
  };
  const isFull = panes.length >= MOST_PANES;
  const actions = (
    <>
      {isFull && (
        <p className="text-xs text-muted-foreground">{MOST_PANES} sessions fit side by side.</p>
      )}
      <Button variant="outline" disabled={isFull} onClick={add}>
        New session
      </Button>
      <Button asChild variant="outline">
        <Link to="/agents/$agentId" params={{ agentId: agent.agent_id }}>
          Agent
        </Link>
      </Button>
    </>
  );
  return (
    <View
      title={`Chat with ${agent.name}`}
      className="flex flex-col overflow-hidden p-0 md:p-0"
      actions={actions}
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
              className="aria-pressed:bg-accent aria-pressed:text-accent-foreground"
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
            onSession={begin(pane)}
            onClose={panes.length > 1 ? close(pane) : undefined}
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
  return <Loaded query={query}>{({ agent }) => <Panes key={agentId} agent={agent} />}</Loaded>;
}
