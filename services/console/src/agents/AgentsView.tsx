import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useVirtualizer } from '@tanstack/react-virtual';
import { MessageSquare, Plus } from 'lucide-react';
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
const COLUMNS =
  'grid grid-cols-[minmax(0,1fr)_auto] items-center gap-x-4 px-4 md:gap-x-6 md:grid-cols-[minmax(0,3fr)_minmax(0,2fr)_minmax(0,2fr)_4rem_11rem_5.5rem] md:px-6';
const WIDE = 'hidden md:block';

const route = getRouteApi('/agents');

function AgentRow({ agent, index, top }: { agent: Schema<'Agent'>; index: number; top: number }) {
  const { agent_id: agentId, name, config, revision, updated_at } = agent;
  const tools = toolsOf(config).join(', ');
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      data-index={index}
      className={`${COLUMNS} absolute inset-x-0 border-b focus-within:bg-muted/60 hover:bg-muted/60`}
      style={{ height: ROW_PX, transform: `translateY(${top}px)` }}
    >
      <div role="cell" className="min-w-0">
        <Link
          to="/agents/$agentId"
          params={{ agentId }}
          className="block truncate py-1 font-medium hover:underline"
        >
          {name}
        </Link>
        <p className="truncate text-xs text-muted-foreground md:hidden">
          {config.model}
          {tools && ` · ${tools}`}
        </p>
      </div>
      <div role="cell" className={`${WIDE} truncate`}>
        {config.model}
      </div>
      <div role="cell" className={`${WIDE} truncate text-muted-foreground`} title={tools}>
        {tools || '–'}
      </div>
      <div role="cell" className={`${WIDE} text-right tabular-nums`}>
        {revision}
      </div>
      <div role="cell" className={`${WIDE} truncate text-muted-foreground tabular-nums`}>
        <Time value={updated_at} />
      </div>
      <div role="cell" className="justify-self-end">
        <Button asChild variant="outline" size="small">
          <Link to="/chat/$agentId" params={{ agentId }} aria-label={`Chat with ${name}`}>
            <MessageSquare aria-hidden /> Chat
          </Link>
        </Button>
      </div>
    </div>
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
  const last = rows.at(-1)?.index ?? 0;
  useEffect(() => {
    if (last >= agents.length - 1) onEnd();
  }, [last, agents.length, onEnd]);
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
        className={`${COLUMNS} hidden border-b py-2 text-xs font-medium text-muted-foreground md:grid`}
      >
        <span role="columnheader">Name</span>
        <span role="columnheader">Model</span>
        <span role="columnheader">Tools</span>
        <span role="columnheader" className="text-right">
          Revision
        </span>
        <span role="columnheader">Changed</span>
        <span role="columnheader">
          <span className="sr-only">Actions</span>
        </span>
      </div>
      <div ref={scroller} role="rowgroup" tabIndex={0} className="min-h-0 flex-1 overflow-y-auto">
        <div
          role="presentation"
          className="relative"
          style={{ height: virtualizer.getTotalSize() }}
        >
          {rows.map(({ index, start }) => (
            <AgentRow
              key={agents[index]!.agent_id}
              agent={agents[index]!}
              index={index}
              top={start}
            />
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
      <div className="flex flex-wrap justify-center gap-2">
        <Button asChild>
          <Link to="/agents/new" search={{ example: true }}>
            Start from an example
          </Link>
        </Button>
        <Button asChild variant="outline">
          <Link to="/agents/new">Start from scratch</Link>
        </Button>
      </div>
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
  const list = useInfiniteQuery(agentsQuery);
  const { hasNextPage, isFetching, fetchNextPage } = list;
  const all = list.data?.pages.flatMap(({ rows }) => rows) ?? [];
  const wanted = name.toLowerCase();
  const agents = all.filter((agent) => agent.name.toLowerCase().includes(wanted));
  const loadMore = (): void => {
    if (hasNextPage && !isFetching) void fetchNextPage();
  };
  const isFiltering = wanted !== '' && hasNextPage;
  useEffect(() => {
    if (isFiltering && !isFetching) void fetchNextPage();
  }, [isFiltering, isFetching, fetchNextPage]);
  return (
    <View
      title="Agents"
      className="flex flex-col overflow-hidden p-0 md:p-0"
      actions={
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
            <Link to="/agents/new">
              <Plus aria-hidden /> New agent
            </Link>
          </Button>
        </>
      }
    >
      {list.isPending && (
        <div className="grid gap-3 p-6" aria-label="Loading" role="status">
          {[1, 2, 3].map((each) => (
            <Skeleton key={each} className="h-9" />
          ))}
        </div>
      )}
      {list.error && <ErrorState error={list.error} onRetry={() => void list.refetch()} />}
      {list.data && all.length === 0 && <NoAgents />}
      {agents.length > 0 && <AgentTable agents={agents} onEnd={loadMore} />}
      {all.length > 0 && agents.length === 0 && (
        <EmptyState title={isFiltering ? 'Searching…' : 'No agent has that name'}>
          {isFiltering
            ? `${all.length} agents have other names.`
            : `None of the ${all.length} agents has “${name}” in its name.`}
        </EmptyState>
      )}
      {all.length > 0 && (
        <p role="status" className="border-t px-4 py-2 text-xs text-muted-foreground md:px-6">
          {wanted === '' ? all.length : `${agents.length} of ${all.length}`}
          {hasNextPage ? ' loaded so far' : all.length === 1 ? ' agent' : ' agents'}
        </p>
      )}
    </View>
  );
}
