import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import type { Schema } from '../api/client.ts';
import { LinkButton } from '../components/Button.tsx';
import { NextPage } from '../components/EntryList.tsx';
import { Input } from '../components/Field.tsx';
import { DataTable, EmptyState, Loaded, Time, View } from '../components/view.tsx';
import { useListKeys } from '../shell/useShortcuts.ts';
import { toolsOf } from './agentFields.ts';
import { agentsQuery } from './agentQueries.ts';

const COLUMNS = ['Name', 'Chat', 'Model', 'Tools', '#Revision', 'Changed'];
const LINK = 'font-medium text-primary hover:underline';

const route = getRouteApi('/agents');

const NoAgents = () => (
  <EmptyState
    title="Create the first agent"
    action={
      <LinkButton variant="primary" to="/agents/new" search={{ example: true }}>
        Start from an example
      </LinkButton>
    }
  >
    An agent is an instruction, a model, and the tools that the model may call. Once it is there,
    you can chat with it, and each turn is recorded.
  </EmptyState>
);

const toRow = ({ agent_id, name, config, ...agent }: Schema<'Agent'>, index: number) => ({
  key: agent_id,
  cells: [
    <span data-index={index} className="block min-w-36 wrap-anywhere">
      <Link to="/agents/$agentId" params={{ agentId: agent_id }} className="hover:underline">
        {name}
      </Link>
    </span>,
    <Link to="/chat/$agentId" params={{ agentId: agent_id }} className={LINK}>
      Chat<span className="sr-only"> with {name}</span>
    </Link>,
    config.model,
    toolsOf(config).join(', ') || '–',
    agent.revision,
    <Time value={agent.updated_at} className="whitespace-nowrap tabular-nums" />,
  ],
});

/** All agents, page by page. The filter looks at all of them, so it loads the pages that are left. */
export function AgentsView() {
  const { name = '' } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useInfiniteQuery(agentsQuery);
  const { data: all = [], hasNextPage, isFetching, isFetchNextPageError, fetchNextPage } = list;
  const agents = all.filter((agent) => agent.name.toLowerCase().includes(name.toLowerCase()));
  const table = useRef<HTMLDivElement>(null);
  useListKeys(table, agents.length);
  useEffect(() => {
    if (name !== '' && hasNextPage && !isFetching && !isFetchNextPageError) void fetchNextPage();
  }, [name, hasNextPage, isFetching, isFetchNextPageError, fetchNextPage]);
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
      <LinkButton variant="primary" to="/agents/new">
        New agent
      </LinkButton>
    </>
  );
  return (
    <View title="Agents" actions={actions}>
      <Loaded query={list}>
        {() =>
          all.length === 0 ? (
            <NoAgents />
          ) : (
            <div ref={table} className="space-y-3">
              <DataTable caption="Agents" columns={COLUMNS} rows={agents.map(toRow)} />
              <p role="status" className="text-xs text-muted-foreground">
                {agents.length} of {all.length} {hasNextPage ? 'loaded so far' : 'agents'}
              </p>
              {hasNextPage && <NextPage query={list} label="Load more agents" />}
            </div>
          )
        }
      </Loaded>
    </View>
  );
}
