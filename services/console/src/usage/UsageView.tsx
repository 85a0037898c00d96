import { getRouteApi, Link } from '@tanstack/react-router';
import { toCurl } from '../api/requestLog.ts';
import { cn } from '../components/classNames.ts';
import { BarChart } from '../components/charts/BarChart.tsx';
import { formatCount, type ChartRow, type ChartSeries } from '../components/charts/ChartFrame.tsx';
import { ColumnChart } from '../components/charts/ColumnChart.tsx';
import { CopyButton } from '../components/CopyButton.tsx';
import { Button } from '../components/Button.tsx';
import { Skeleton, View } from '../components/layout.tsx';
import { EmptyState, ErrorState } from '../components/states.tsx';
import { agentName, useAgents } from '../sessions/useAgents.ts';
import { daysOf, eachDay, GROUPS, type UsageGroup, type UsageSearch } from './search.ts';
import { StorageUse } from './StorageUse.tsx';
import { UsageFilters } from './UsageFilters.tsx';
import { formatCost, UsageTable, type NamedEntry } from './UsageTable.tsx';
import { useKeys, useUsage, type UsageEntry, type UsageQuery } from './useUsage.ts';

const route = getRouteApi('/usage');

const GROUP_LABELS: Readonly<Record<UsageGroup, string>> = {
  day: 'Day',
  agent: 'Agent',
  model: 'Model',
  key: 'Key',
  code: 'Failure',
};
/** Bars of a chart; the table has all entries. */
const MOST_BARS = 12;

const RUNS: readonly ChartSeries[] = [
  { key: 'completed', label: 'Completed', look: 1 },
  { key: 'failed', label: 'Failed', look: 3 },
  { key: 'interrupted', label: 'Interrupted', look: 4 },
];
const TOKENS: readonly ChartSeries[] = [
  { key: 'prompt', label: 'Prompt', look: 1 },
  { key: 'completion', label: 'Answer', look: 2 },
];
const COST: readonly ChartSeries[] = [{ key: 'cost', label: 'Cost', look: 1 }];

const NO_USE: UsageEntry = {
  runs: 0,
  completed: 0,
  failed: 0,
  interrupted: 0,
  tokens: { prompt: 0, completion: 0, total: 0 },
  model_calls: 0,
  tool_calls: 0,
  cost: null,
  unpriced_tokens: 0,
};

const TICK = new Intl.DateTimeFormat(undefined, {
  month: 'short',
  day: 'numeric',
  timeZone: 'UTC',
});

const toChartRow = ({ id, name, entry }: NamedEntry): ChartRow => ({
  id,
  label: name,
  ...(entry.day !== undefined && { tick: TICK.format(new Date(entry.day)) }),
  values: {
    completed: entry.completed,
    failed: entry.failed,
    interrupted: entry.interrupted,
    ...entry.tokens,
    // Only for the height of a bar; its text has all digits.
    cost: Number(entry.cost?.amount ?? 0),
  },
  texts: { cost: formatCost(entry.cost) },
});

function Totals({ entry }: { entry: UsageEntry }) {
  const { runs, failed, interrupted, tokens, cost, unpriced_tokens } = entry;
  const cards = [
    ['Runs', formatCount(runs), `${formatCount(entry.completed)} completed`],
    ['Failed', formatCount(failed), `${formatCount(interrupted)} interrupted`],
    [
      'Tokens',
      formatCount(tokens.total),
      `${formatCount(tokens.prompt)} prompt, ${formatCount(tokens.completion)} answer`,
    ],
    [
      'Cost',
      formatCost(cost),
      unpriced_tokens > 0
        ? `without ${formatCount(unpriced_tokens)} tokens that have no price`
        : '',
    ],
    ['Model calls', formatCount(entry.model_calls), `${formatCount(entry.tool_calls)} tool calls`],
  ] as const;
  return (
    <dl className="grid grid-cols-2 gap-3 md:grid-cols-5">
      {cards.map(([title, value, note]) => (
        <div key={title} className="rounded-lg border bg-card px-4 py-3">
          <dt className="text-muted-foreground">{title}</dt>
          <dd>
            <span className="block text-xl font-semibold break-words tabular-nums">{value}</span>
            <span className="block min-h-4 text-xs text-muted-foreground tabular-nums">{note}</span>
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** The entries with names, in the order in which they are shown. */
function useNamedEntries(
  entries: readonly UsageEntry[],
  group: UsageGroup,
  { search, range }: { search: UsageSearch; range: { from: string; to: string } },
): NamedEntry[] {
  const agents = useAgents();
  const keys = useKeys();
  const { by: _by, ...rest } = search;
  const named = entries.map((entry): NamedEntry => {
    const { day, agent_id, model, key_id, code } = entry;
    if (day !== undefined)
      return { id: day, name: day, entry, only: { ...rest, by: 'agent', from: day, to: day } };
    if (agent_id !== undefined)
      return {
        id: agent_id,
        name: agentName(agents, agent_id),
        entry,
        only: { ...rest, agent_id },
      };
    if (key_id !== undefined) {
      const name = keys.find((key) => key.key_id === key_id)?.name ?? key_id;
      return { id: key_id, name, entry, only: { ...rest, key_id } };
    }
    if (model !== undefined) return { id: model, name: model, entry, only: { ...rest, model } };
    return { id: code ?? '', name: code ?? 'none (completed)', entry };
  });
  if (group !== 'day') return named.toSorted((one, other) => other.entry.runs - one.entry.runs);
  const byDay = new Map(named.map((each) => [each.id, each]));
  return (
    eachDay(range)?.map(
      (day) => byDay.get(day) ?? { id: day, name: day, entry: { ...NO_USE, day } },
    ) ?? named
  );
}

function Charts({ group, rows }: { group: UsageGroup; rows: readonly NamedEntry[] }) {
  const shown = (group === 'day' ? rows : rows.slice(0, MOST_BARS))
    .filter(({ id }) => group !== 'code' || id !== '')
    .map(toChartRow);
  const Chart = group === 'day' ? ColumnChart : BarChart;
  const hasCost = rows.some(({ entry }) => entry.cost);
  const noun = GROUP_LABELS[group].toLowerCase();
  const note = rows.length > MOST_BARS && group !== 'day' ? ` (the first ${MOST_BARS})` : '';
  return (
    <div className={cn('grid gap-3', hasCost ? 'xl:grid-cols-3' : 'lg:grid-cols-2')}>
      <Chart title={`Runs by ${noun}${note}`} series={RUNS} rows={shown} />
      <Chart title={`Tokens by ${noun}${note}`} series={TOKENS} rows={shown} />
      {hasCost && (
        <Chart
          title={`Cost by ${noun}${note}`}
          series={COST}
          rows={shown}
          format={(value) => String(value)}
        />
      )}
    </div>
  );
}

const curlOf = (query: UsageQuery): string => {
  const url = new URL('/v1/usage', location.origin);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, String(value));
  return toCurl({ method: 'GET', url: url.href, body: undefined, headers: {} });
};

/** Runs, failures, tokens and cost of a range of days, and what is stored. */
export function UsageView() {
  const search = route.useSearch();
  const range = daysOf(search, Date.now());
  const { days: _days, by: group = 'day', ...filters } = search;
  const query = { ...filters, ...range };
  const totals = useUsage(query);
  const grouped = useUsage({ ...query, by: group });
  const rows = useNamedEntries(grouped.data?.entries ?? [], group, { search, range });
  const error = totals.error ?? grouped.error;
  const total = totals.data?.entries[0];
  const retry = (): void => {
    void totals.refetch();
    void grouped.refetch();
  };
  return (
    <View
      title="Usage"
      description="A run counts on the day on which it ended, in UTC."
      actions={<CopyButton text={curlOf({ ...query, by: group })} label="Copy as curl" />}
      className="grid grid-cols-[minmax(0,1fr)] content-start gap-4"
    >
      <UsageFilters search={search} {...range} />
      {error ? (
        <ErrorState error={error} onRetry={retry} />
      ) : (
        <>
          {totals.data ? <Totals entry={total ?? NO_USE} /> : <Skeleton className="h-24" />}
          <nav aria-label="Group by" className="flex flex-wrap gap-1">
            {GROUPS.map((each) => {
              const { by: _by, ...rest } = search;
              return (
                <Button
                  key={each}
                  variant={each === group ? 'outline' : 'ghost'}
                  size="small"
                  asChild
                >
                  <Link
                    to="/usage"
                    search={each === 'day' ? rest : { ...rest, by: each }}
                    aria-current={each === group ? 'true' : undefined}
                    activeProps={{}}
                    replace
                  >
                    {GROUP_LABELS[each]}
                  </Link>
                </Button>
              );
            })}
          </nav>
          {!grouped.data && <Skeleton className="h-64" />}
          {grouped.data && !total?.runs && (
            <EmptyState
              title="No runs in these days"
              action={
                <Button asChild variant="outline">
                  <Link to="/agents">Open an agent</Link>
                </Button>
              }
            >
              Choose more days or fewer filters, or run an agent: its usage appears here when the
              run has ended.
            </EmptyState>
          )}
          {grouped.data && total && total.runs > 0 && (
            <>
              <Charts group={group} rows={rows} />
              {grouped.data.isCut && (
                <p role="status">
                  Only the first entries are shown. Choose fewer days, or a filter.
                </p>
              )}
              <UsageTable
                group={GROUP_LABELS[group].toLowerCase()}
                rows={group === 'day' ? rows.toReversed() : rows}
              />
            </>
          )}
        </>
      )}
      <StorageUse />
    </View>
  );
}
