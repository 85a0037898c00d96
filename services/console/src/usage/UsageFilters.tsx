import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { modelsQuery, useAgentNames, useKeyNames } from '../agents/agentQueries.ts';
import { Button } from '../components/Button.tsx';
import { SelectField, TextField } from '../components/Field.tsx';
import { daysOf, GROUPS, RANGES, type UsageSearch } from './search.ts';

const KINDS = [
  ['run', 'Runs'],
  ['replay', 'Replays'],
] as const;

const NO_DAYS = { days: undefined, from: undefined, to: undefined };

/** The days and the filters of the view, which are in its address. */
export function UsageFilters() {
  const search = useSearch({ from: '/usage' });
  const range = daysOf(search, Date.now());
  const navigate = useNavigate({ from: '/usage' });
  const change = (changes: Partial<Record<keyof UsageSearch, string | number | undefined>>) =>
    void navigate({ search: { ...search, ...changes } as UsageSearch, replace: true });
  const isChosen = search.from !== undefined || search.to !== undefined;
  const none = { agent_id: undefined, model: undefined, key_id: undefined, kind: undefined };
  const models = (useQuery(modelsQuery).data ?? []).map(({ id }) => [id, id] as const);
  const agents = useAgentNames();
  const keys = useKeyNames();
  const choice = (
    name: keyof typeof none,
    label: string,
    all: string,
    options: Iterable<readonly [string, string]>,
  ) => {
    const { [name]: chosen = '' } = search;
    // The value of an address may be no option.
    const shown = new Map([['', all], [chosen, chosen || all], ...options]);
    const onValue = (value: string): void => change({ [name]: value || undefined });
    return <SelectField label={label} value={chosen} options={[...shown]} onValue={onValue} />;
  };
  return (
    <div className="grid grid-cols-2 items-end gap-3 md:grid-cols-[repeat(auto-fill,minmax(10rem,1fr))]">
      <SelectField
        label="Days"
        value={isChosen ? '' : String(search.days ?? RANGES[0])}
        options={[
          ...RANGES.map((days) => [String(days), `Last ${days} days`] as const),
          ['', 'Choose days'],
        ]}
        onValue={(days) => change({ ...NO_DAYS, ...(days ? { days: Number(days) } : range) })}
      />
      {isChosen &&
        (['from', 'to'] as const).map((side) => (
          <TextField
            key={side}
            label={side === 'from' ? 'From (UTC)' : 'To (UTC)'}
            type="date"
            value={range[side]}
            onValue={(day) => day && change({ ...range, [side]: day })}
          />
        ))}
      <SelectField
        label="Group by"
        value={search.by ?? 'day'}
        options={Object.entries(GROUPS)}
        onValue={(by) => change({ by })}
      />
      {choice('agent_id', 'Agent', 'All agents', agents)}
      {choice('model', 'Model', 'All models', models)}
      {choice('key_id', 'Key', 'All keys', keys)}
      {choice('kind', 'Kind', 'Runs and replays', KINDS)}
      {Object.keys(none).some((name) => name in search) && (
        <Button onClick={() => change(none)}>Clear filters</Button>
      )}
    </div>
  );
}
