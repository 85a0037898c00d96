import { getRouteApi, Link } from '@tanstack/react-router';
import { toCurl } from '../api/requestLog.ts';
import { Button } from '../components/Button.tsx';
import { Chart, formatCount, type ChartRow, type ChartSeries } from '../components/Chart.tsx';
import { CopyButton } from '../components/CopyButton.tsx';
import { Skeleton, View } from '../components/layout.tsx';
import { EmptyState, ErrorState } from '../components/states.tsx';
import { agentName, useAgents } from '../sessions/useAgents.ts';
import { daysOf, eachDay, GROUPS, type UsageGroup, type UsageSearch } from './search.ts';
import { StorageUse } from './StorageUse.tsx';
import { UsageFilters } from './UsageFilters.tsx';
import { formatCost, UsageTable, type NamedEntry } from './UsageTable.tsx';
import { useKeys, useUsage, type UsageEntry, type UsageQuery } from './useUsage.ts';

const route = getRouteApi('/usage');

const GROUP_NAMES: Readonly<Record<UsageGroup, string>> = {
  day: 'Day',
  agent: 'Agent',
  model: 'Model',
  key: 'Key',
  code: 'Failure',
};
/** Bars of a chart; the table has all entries. */
const MOST_BARS = 12;

const CHARTS: readonly (readonly [title: string, series: readonly ChartSeries[]])[] = [
  [
    'Runs',
    [
      { key: 'completed', label: 'Completed', look: 1 },
      { key: 'failed', label: 'Failed', look: 3 },
      { key: 'interrupted', label: 'Interrupted', look: 4 },
    ],
  ],
  [
    'Tokens',
    [
      { key: 'prompt', label: 'Prompt', look: 1 },
      { key: 'completion', label: 'Answer', look: 2 },
    ],
  ],
  ['Cost', [{ key: 'cost', label: 'Cost', look: 1 }]],
];

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

const DAY = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric', timeZone: 'UTC' });

const toChartRow = ({ id, name, entry }: NamedEntry): ChartRow => {
  const { day, completed, failed, interrupted, tokens, cost } = entry;
  // The number is only for the length of a bar: its text has all digits.
  const values = { completed, failed, interrupted, ...tokens, cost: Number(cost?.amount ?? 0) };
  const tick = day === undefined ? {} : { tick: DAY.format(new Date(day)) };
  return { id, label: name, ...tick, values, texts: { cost: formatCost(cost) } };
};

function Totals({ entry }: { entry: UsageEntry }) {
  const { runs, tokens, cost, unpriced_tokens: unpriced } = entry;
  const cards = [
    ['Runs', formatCount(runs), `${formatCount(entry.completed)} completed`],
    ['Failed', formatCount(entry.failed), `${formatCount(entry.interrupted)} interrupted`],
    [
      'Tokens',
      formatCount(tokens.total),
      `${formatCount(tokens.prompt)} prompt, ${formatCount(tokens.completion)} answer`,
    ],
    [
      'Cost',
      formatCost(cost),
      unpriced > 0 && `and ${formatCount(unpriced)} tokens without a price`,
    ],
    ['Model calls', formatCount(entry.model_calls), `${formatCount(entry.tool_calls)} tool calls`],
  ] as const;
  return (
    <dl className="grid grid-cols-2 gap-3 md:grid-cols-5">
      {cards.map(([title, value, note]) => (
        <div key={title} className="rounded-lg border bg-card px-4 py-3">
          <dt className="text-muted-foreground">{title}</dt>
          <dd className="text-xs text-muted-foreground tabular-nums">
            <span className="block text-xl font-semibold break-words text-foreground">{value}</span>
            {note}
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** The entries with names, in the order in which they are shown. */
function useNamedEntries(entries: readonly UsageEntry[], search: UsageSearch): NamedEntry[] {
  const agents = useAgents();
  const keys = useKeys();
  const named = entries.map((entry): NamedEntry => {
    const { day, agent_id, model, key_id, code } = entry;
    const all = { ...search, by: 'day' } as const;
    if (day !== undefined)
      return { id: day, name: day, entry, only: { ...search, by: 'agent', from: day, to: day } };
    if (agent_id !== undefined)
      return { id: agent_id, name: agentName(agents, agent_id), entry, only: { ...all, agent_id } };
    if (model !== undefined) return { id: model, name: model, entry, only: { ...all, model } };
    if (key_id === undefined) return { id: code ?? '', name: code ?? 'none (completed)', entry };
    const name = keys.find((key) => key.key_id === key_id)?.name ?? key_id;
    return { id: key_id, name, entry, only: { ...all, key_id } };
  });
  if ((search.by ?? 'day') !== 'day')
    return named.toSorted((one, other) => other.entry.runs - one.entry.runs);
  const byDay = new Map(named.map((each) => [each.id, each]));
  const days = eachDay(daysOf(search, Date.now()));
  return (
    days?.map((day) => byDay.get(day) ?? { id: day, name: day, entry: { ...NO_USE, day } }) ?? named
  );
}

const curlOf = (query: UsageQuery): string => {
  const url = new URL('/v1/usage', location.origin);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, String(value));
  return toCurl({ method: 'GET', url: url.href, body: undefined, headers: {} });
};

function Groups({ group }: { group: UsageGroup }) {
  return (
    <nav aria-label="Group by" className="flex flex-wrap gap-1">
      {GROUPS.map((by) => (
        <Button key={by} variant={by === group ? 'outline' : 'ghost'} size="small" asChild>
          <Link
            to="/usage"
            search={(now) => ({ ...(now as UsageSearch), by })}
            aria-current={by === group ? 'true' : 'false'}
            replace
          >
            {GROUP_NAMES[by]}
          </Link>
        </Button>
      ))}
    </nav>
  );
}

/** Runs, failures, tokens and cost of a range of days, and what is stored. */
export function UsageView() {
  const search = route.useSearch();
  const { days: _days, by: group = 'day', ...filters } = search;
  const range = daysOf(search, Date.now());
  const query = { ...filters, ...range };
  const totals = useUsage(query);
  const grouped = useUsage({ ...query, by: group });
  const rows = useNamedEntries(grouped.data?.entries ?? [], search);
  const error = totals.error ?? grouped.error;
  const total = totals.data?.entries[0] ?? NO_USE;
  const noun = GROUP_NAMES[group].toLowerCase();
  const charted = rows
    .filter(({ id }) => id !== '')
    .slice(0, group === 'day' ? undefined : MOST_BARS);
  const charts = CHARTS.filter(([title]) => title !== 'Cost' || total.cost);
  return (
    <View
      title="Usage"
      description="A run counts on the day on which it ended, in UTC."
      actions={<CopyButton text={curlOf({ ...query, by: group })} label="Copy as curl" />}
      className="grid grid-cols-[minmax(0,1fr)] content-start gap-4"
    >
      <UsageFilters search={search} range={range} />
      {error && (
        <ErrorState
          error={error}
          onRetry={() => void totals.refetch().then(() => grouped.refetch())}
        />
      )}
      {!error && (totals.data ? <Totals entry={total} /> : <Skeleton className="h-24" />)}
      {!error && <Groups group={group} />}
      {!error && !grouped.data && <Skeleton className="h-64" />}
      {!error && grouped.data && total.runs === 0 && (
        <EmptyState
          title="No runs in these days"
          action={
            <Button asChild variant="outline">
              <Link to="/agents">Open an agent</Link>
            </Button>
          }
        >
          Choose more days or fewer filters, or run an agent: its usage appears when the run has
          ended.
        </EmptyState>
      )}
      {!error && grouped.data && total.runs > 0 && (
        <>
          <div className="grid gap-3 lg:grid-cols-2 xl:grid-cols-3">
            {charts.map(([title, series]) => (
              <Chart
                key={title}
                kind={group === 'day' ? 'columns' : 'bars'}
                title={`${title} by ${noun}${charted.length < rows.length && rows.length > MOST_BARS ? `, the first ${MOST_BARS}` : ''}`}
                series={series}
                rows={charted.map(toChartRow)}
              />
            ))}
          </div>
          {grouped.data.isCut && (
            <p role="status">Only the first entries are shown. Choose fewer days, or a filter.</p>
          )}
          <UsageTable group={noun} rows={group === 'day' ? rows.toReversed() : rows} />
        </>
      )}
      <StorageUse />
    </View>
  );
}
