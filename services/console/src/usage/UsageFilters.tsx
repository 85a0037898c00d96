import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { api, dataOf } from '../api/client.ts';
import { Button } from '../components/Button.tsx';
import { Field, Input, Select } from '../components/Field.tsx';
import { useAgents } from '../sessions/useAgents.ts';
import { RANGES, type UsageSearch } from './search.ts';
import { useKeys } from './useUsage.ts';

interface Option {
  value: string;
  label: string;
}

interface ChoiceProps {
  label: string;
  /** Of the choice that filters nothing. */
  all: string;
  value: string | undefined;
  options: readonly Option[];
  onChange: (value: string | undefined) => void;
}

function Choice({ label, all, value, options, onChange }: ChoiceProps) {
  const isKnown = value === undefined || options.some((option) => option.value === value);
  return (
    <Field label={label}>
      <Select value={value ?? ''} onChange={({ target }) => onChange(target.value || undefined)}>
        <option value="">{all}</option>
        {!isKnown && <option value={value}>{value}</option>}
        {options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.label}
          </option>
        ))}
      </Select>
    </Field>
  );
}

interface FiltersProps {
  search: UsageSearch;
  /** The days that are shown. */
  from: string;
  to: string;
}

/** The days and the filters of the view, which are in its address. */
export function UsageFilters({ search, from, to }: FiltersProps) {
  const navigate = useNavigate();
  const agents = useAgents();
  const keys = useKeys();
  const models = useQuery({
    queryKey: ['models'],
    queryFn: () => dataOf(api.GET('/v1/models')),
    staleTime: 60_000,
  }).data;
  const change = (changes: { [Name in keyof UsageSearch]?: UsageSearch[Name] | undefined }) =>
    void navigate({
      to: '/usage',
      search: { ...search, ...changes } as UsageSearch,
      replace: true,
    });
  const isFiltered = ['agent_id', 'model', 'key_id', 'kind'].some((name) => name in search);
  const isChosen = search.from !== undefined || search.to !== undefined;
  const { by } = search;
  return (
    <div className="grid grid-cols-2 items-end gap-3 md:grid-cols-[repeat(auto-fill,minmax(10rem,1fr))]">
      <Field label="Days">
        <Select
          value={isChosen ? '' : (search.days ?? 30)}
          onChange={({ target }) => {
            const days = RANGES.find((each) => String(each) === target.value);
            change(days ? { days, from: undefined, to: undefined } : { days, from, to });
          }}
        >
          {RANGES.map((days) => (
            <option key={days} value={days}>
              Last {days} days
            </option>
          ))}
          <option value="">Choose days</option>
        </Select>
      </Field>
      {isChosen && (
        <>
          <Field label="From (UTC)">
            <Input
              type="date"
              value={from}
              max={to}
              onChange={({ target }) =>
                change({ days: undefined, from: target.value || undefined, to })
              }
            />
          </Field>
          <Field label="To (UTC)">
            <Input
              type="date"
              value={to}
              min={from}
              onChange={({ target }) =>
                change({ days: undefined, from, to: target.value || undefined })
              }
            />
          </Field>
        </>
      )}
      <Choice
        label="Agent"
        all="All agents"
        value={search.agent_id}
        options={agents.map(({ agent_id, name }) => ({ value: agent_id, label: name }))}
        onChange={(agent_id) => change({ agent_id })}
      />
      <Choice
        label="Model"
        all="All models"
        value={search.model}
        options={(models ?? []).map(({ id }) => ({ value: id, label: id }))}
        onChange={(model) => change({ model })}
      />
      <Choice
        label="Key"
        all="All keys"
        value={search.key_id}
        options={keys.map(({ key_id, name }) => ({ value: key_id, label: name }))}
        onChange={(key_id) => change({ key_id })}
      />
      <Choice
        label="Kind"
        all="Runs and replays"
        value={search.kind}
        options={[
          { value: 'run', label: 'Runs' },
          { value: 'replay', label: 'Replays' },
        ]}
        onChange={(kind) => change({ kind: kind as UsageSearch['kind'] })}
      />
      {isFiltered && (
        <Button variant="outline" asChild>
          <Link to="/usage" search={by ? { by } : {}}>
            Clear filters
          </Link>
        </Button>
      )}
    </div>
  );
}
