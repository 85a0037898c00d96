import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useVirtualizer } from '@tanstack/react-virtual';
import { MessageSquare } from 'lucide-react';
import { useEffect, useRef } from 'react';
import type { Schema } from '../api/client.ts';
import { Button } from '../components/Button.tsx';
import { Input } from '../components/Field.tsx';
import { Skeleton, View } from '../components/layout.tsx';
import { EmptyState, ErrorState } from '../components/states.tsx';
import { Time } from '../components/Time.tsx';
import { useListKeys } from '../components/useListKeys.ts';
import { toolsOf } from './agentDraft.ts';
import { agentsQuery } from './agentQueries.ts';

const ROW_PX = 53;
const ROW =
  'grid grid-cols-[minmax(0,1fr)_auto] items-center gap-x-4 px-4 md:grid-cols-[minmax(0,3fr)_minmax(0,2fr)_minmax(0,2fr)_4rem_11rem_5.5rem] md:gap-x-6 md:px-6';
const WIDE = 'hidden truncate md:block';
const COLUMNS = ['Name', 'Model', 'Tools', 'Revision', 'Changed', 'Actions'];

const route = getRouteApi('/agents');

function AgentCells({ agent }: { agent: Schema<'Agent'> }) {
  const { agent_id: agentId, name, config, revision, updated_at } = agent;
  const tools = toolsOf(config).join(', ');
  return (
    <>
      <div role="cell" className="min-w-0">
        <Link
          to="/agents/$agentId"
          params={{ agentId }}
          className="block truncate py-1 font-medium hover:underline"
        >
          {name}
        </Link>
        <p className="truncate text-xs text-muted-foreground md:hidden">
          {[config.model, tools].filter(Boolean).join(' · ')}
        </p>
      </div>
      <div role="cell" className={WIDE}>
        {config.model}
      </div>
      <div role="cell" className={WIDE} title={tools}>
        {tools || '–'}
      </div>
      <div role="cell" className={`${WIDE} text-right tabular-nums`}>
        {revision}
      </div>
      <div role="cell" className={`${WIDE} text-muted-foreground tabular-nums`}>
        <Time value={updated_at} />
      </div>
      <div role="cell" className="justify-self-end">
        <Button asChild variant="outline" size="small">
          <Link to="/chat/$agentId" params={{ agentId }} aria-label={`Chat with ${name}`}>
            <MessageSquare aria-hidden /> Chat
          </Link>
        </Button>
      </div>
    </>
  );
}

function AgentTable({ agents, onEnd }: { agents: readonly Schema<'Agent'>[]; onEnd: () => void }) {
  const scroller = useRef<HTMLDivElement>(null);
  const virtualizer = useVirtualizer({
    count: agents.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 10,
  });
  const rows = virtualizer.getVirtualItems();
  const isAtEnd = (rows.at(-1)?.index ?? 0) >= agents.length - 1;
  useEffect(() => {
    if (isAtEnd) onEnd();
  }, [isAtEnd, onEnd]);
  useListKeys(scroller, agents.length, (index) => virtualizer.scrollToIndex(index));
  return (
    <div
      role="table"
      aria-label="Agents"
      aria-rowcount={agents.length + 1}
      className="flex min-h-0 flex-1 flex-col"
    >
      <div
        role="row"
        className={`${ROW} hidden border-b py-2 text-xs font-medium text-muted-foreground md:grid`}
      >
        {COLUMNS.map((name) => (
          <span key={name} role="columnheader" className="nth-4:text-right last:sr-only">
            {name}
          </span>
        ))}
      </div>
      <div ref={scroller} role="rowgroup" tabIndex={0} className="min-h-0 flex-1 overflow-y-auto">
        <div
          role="presentation"
          className="relative"
          style={{ height: virtualizer.getTotalSize() }}
        >
          {rows.map(({ index, start }) => (
            <div
              key={agents[index]!.agent_id}
              role="row"
              aria-rowindex={index + 2}
              data-index={index}
              className={`${ROW} absolute inset-x-0 border-b focus-within:bg-muted/60 hover:bg-muted/60`}
              style={{ height: ROW_PX, transform: `translateY(${start}px)` }}
            >
              <AgentCells agent={agents[index]!} />
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}

const NoAgents = () => (
  <EmptyState
    title="Create the first agent"
    action={
      <Button asChild>
        <Link to="/agents/new" search={{ example: true }}>
          Start from an example
        </Link>
      </Button>
    }
  >
    An agent is an instruction, a model, and the tools that the model may call. Once it is there,
    you can chat with it, and each turn is recorded.
  </EmptyState>
);

/** All agents. The filter looks at the names of all of them, so it loads the pages that are left. */
export function AgentsView() {
  const { name = '' } = route.useSearch();
  const navigate = route.useNavigate();
  const { data, error, isPending, hasNextPage, isFetching, ...list } =
    useInfiniteQuery(agentsQuery);
  const { fetchNextPage } = list;
  const all = data?.pages.flatMap(({ rows }) => rows);
  const agents =
    all?.filter((agent) => agent.name.toLowerCase().includes(name.toLowerCase())) ?? [];
  const loadMore = (): void => {
    if (hasNextPage && !isFetching) void fetchNextPage();
  };
  useEffect(() => {
    if (name !== '' && hasNextPage && !isFetching) void fetchNextPage();
  }, [name, hasNextPage, isFetching, fetchNextPage]);
  const actions = (
    <>
      <Input
        data-search
        type="search"
        aria-label="Filter by name"
        placeholder="Filter by name  /"
        className="w-44 md:w-56"
        value={name}
        onChange={({ target: { value } }) =>
          void navigate({ search: value === '' ? {} : { name: value }, replace: true })
        }
      />
      <Button asChild>
        <Link to="/agents/new">New agent</Link>
      </Button>
    </>
  );
  return (
    <View title="Agents" className="flex flex-col overflow-hidden p-0 md:p-0" actions={actions}>
      {isPending && <Skeleton className="m-6 h-40" />}
      {error && <ErrorState error={error} onRetry={() => void list.refetch()} />}
      {all?.length === 0 && <NoAgents />}
      {agents.length > 0 && <AgentTable agents={agents} onEnd={loadMore} />}
      {all && all.length > 0 && (
        <p role="status" className="border-t px-4 py-2 text-xs text-muted-foreground md:px-6">
          {agents.length} of {all.length}{' '}
          {hasNextPage ? 'loaded so far' : all.length === 1 ? 'agent' : 'agents'}
        </p>
      )}
    </View>
  );
}
