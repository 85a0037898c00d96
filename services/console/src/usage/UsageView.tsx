import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { api, pageOf } from '../api/client.ts';
import { Chart, TOKEN_SERIES, type ChartRow, type ChartSeries } from '../components/Chart.tsx';
import { Card, EmptyState, Facts, Loaded, View } from '../components/view.tsx';
import { useAgentNames, useKeyNames } from '../agents/agentQueries.ts';
import { daysOf, eachDay, GROUPS, type UsageGroup, type UsageSearch } from './search.ts';
import { StorageUse } from './StorageUse.tsx';
import { UsageFilters } from './UsageFilters.tsx';
import { figuresOf, showCost, UsageTable } from './UsageTable.tsx';
import type { NamedEntry, UsageEntry } from './UsageTable.tsx';

const route = getRouteApi('/usage');

const MOST_ENTRIES = 1_000;

/** A query of usage. Without `by` there is one sum. */
interface UsageQuery extends Omit<UsageSearch, 'days' | 'by'> {
  from: string;
  to: string;
  by?: UsageGroup;
}

/** A page of usage, of as many entries as the API gives at once. */
const useUsage = (query: UsageQuery) =>
  useQuery({
    queryKey: ['usage', query],
    queryFn: () =>
      pageOf(api.GET('/v1/usage', { params: { query: { ...query, limit: MOST_ENTRIES } } })),
    // Entries of other days or of another group would stand under the wrong heading.
    ...(!query.by && { placeholderData: keepPreviousData }),
  });

/** Bars of a chart; the table has all entries. */
const MOST_BARS = 12;

const CHARTS: Readonly<Record<string, readonly ChartSeries[]>> = {
  Runs: [
    ['completed', 'Completed', 1],
    ['failed', 'Failed', 3],
    ['interrupted', 'Interrupted', 4],
  ],
  Tokens: TOKEN_SERIES,
  Cost: [['cost', 'Cost', 1]],
};

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
  return { id, label: name, ...tick, values, texts: { cost: showCost(cost) } };
};

/** The entries with names, in the order in which they are shown. */
function useNamedEntries(entries: readonly UsageEntry[], search: UsageSearch): NamedEntry[] {
  const names = new Map([...useAgentNames(), ...useKeyNames()]);
  const named = entries.map((entry): NamedEntry => {
    const { day, agent_id, model, key_id, code } = entry;
    if (day !== undefined)
      return { id: day, name: day, entry, only: { ...search, by: 'agent', from: day, to: day } };
    const filter = Object.entries({ agent_id, model, key_id }).find(([, id]) => id !== undefined);
    if (!filter) return { id: code ?? '', name: code ?? 'none (completed)', entry };
    const id = filter[1]!;
    const only = { ...search, by: 'day', [filter[0]]: id } as const;
    return { id, name: names.get(id) ?? id, entry, only };
  });
  if ((search.by ?? 'day') !== 'day')
    return named.toSorted((one, other) => other.entry.runs - one.entry.runs);
  const byDay = new Map(named.map((each) => [each.id, each]));
  const days = eachDay(daysOf(search, Date.now()));
  return (
    days?.map((day) => byDay.get(day) ?? { id: day, name: day, entry: { ...NO_USE, day } }) ?? named
  );
}

/** Runs, failures, tokens and cost of a range of days, and what is stored. */
export function UsageView() {
  const search = route.useSearch();
  const { days: _days, by: group = 'day', ...filters } = search;
  const query = { ...filters, ...daysOf(search, Date.now()) };
  const totals = useUsage(query);
  const grouped = useUsage({ ...query, by: group });
  const rows = useNamedEntries(grouped.data?.rows ?? [], search);
  const isLoaded = totals.data !== undefined && grouped.data !== undefined;
  const total = totals.data?.rows[0] ?? NO_USE;
  const noun = GROUPS[group].toLowerCase();
  const charted = rows
    .filter(({ id }) => id !== '')
    .slice(0, group === 'day' ? undefined : MOST_BARS);
  return (
    <View
      title="Usage"
      description="A run counts on the day on which it ended, in UTC."
      className="grid grid-cols-[minmax(0,1fr)] content-start gap-4"
    >
      <UsageFilters />
      {totals.data && (
        <Card>
          <Facts facts={figuresOf(total)} className="[&_dd]:text-xl [&_dd]:font-semibold" />
        </Card>
      )}
      {!isLoaded && <Loaded query={totals.data ? grouped : totals}>{() => null}</Loaded>}
      {isLoaded && total.runs === 0 && (
        <EmptyState title="No runs in these days">
          Choose more days or fewer filters, or run an agent: its usage appears when the run has
          ended.
        </EmptyState>
      )}
      {isLoaded && total.runs > 0 && (
        <>
          <div className="grid gap-3 lg:grid-cols-2 xl:grid-cols-3">
            {Object.entries(CHARTS)
              .filter(([title]) => title !== 'Cost' || total.cost)
              .map(([title, series]) => (
                <Chart
                  key={title}
                  kind={group === 'day' ? 'columns' : 'bars'}
                  title={`${title} by ${noun}${charted.length < rows.length && rows.length > MOST_BARS ? `, the first ${MOST_BARS}` : ''}`}
                  series={series}
                  rows={charted.map(toChartRow)}
                />
              ))}
          </div>
          {grouped.data?.next && (
            <p role="status">Only the first entries are shown. Choose fewer days, or a filter.</p>
          )}
          <UsageTable group={GROUPS[group]} rows={group === 'day' ? rows.toReversed() : rows} />
        </>
      )}
      <StorageUse title="Storage" />
    </View>
  );
}
