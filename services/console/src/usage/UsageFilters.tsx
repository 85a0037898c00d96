import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { modelsQuery } from '../agents/agentQueries.ts';
import { Button } from '../components/Button.tsx';
import { Field, Input, Select } from '../components/Field.tsx';
import { useAgents } from '../sessions/useAgents.ts';
import { RANGES, type UsageSearch } from './search.ts';
import { useKeys } from './useUsage.ts';

interface FiltersProps {
  search: UsageSearch;
  /** The days that are shown. */
  range: { from: string; to: string };
}

/** The days and the filters of the view, which are in its address. */
export function UsageFilters({ search, range }: FiltersProps) {
  const navigate = useNavigate();
  const change = (changes: Partial<Record<keyof UsageSearch, string | number | undefined>>) =>
    void navigate({
      to: '/usage',
      search: { ...search, ...changes } as UsageSearch,
      replace: true,
    });
  const isChosen = search.from !== undefined || search.to !== undefined;
  const none = { agent_id: undefined, model: undefined, key_id: undefined, kind: undefined };
  const models = useQuery(modelsQuery).data ?? [];
  const choices = [
    ['agent_id', 'Agent', 'All agents', useAgents().map((each) => [each.agent_id, each.name])],
    ['model', 'Model', 'All models', models.map(({ id }) => [id, id])],
    ['key_id', 'Key', 'All keys', useKeys().map((each) => [each.key_id, each.name])],
    [
      'kind',
      'Kind',
      'Runs and replays',
      [
        ['run', 'Runs'],
        ['replay', 'Replays'],
      ],
    ],
  ] as const;
  return (
    <div className="grid grid-cols-2 items-end gap-3 md:grid-cols-[repeat(auto-fill,minmax(10rem,1fr))]">
      <Field label="Days">
        <Select
          value={isChosen ? 0 : (search.days ?? RANGES[0])}
          onChange={({ target }) =>
            change(
              target.value === '0'
                ? { days: undefined, ...range }
                : { days: Number(target.value), from: undefined, to: undefined },
            )
          }
        >
          {RANGES.toSorted((one, other) => one - other).map((days) => (
            <option key={days} value={days}>
              Last {days} days
            </option>
          ))}
          <option value={0}>Choose days</option>
        </Select>
      </Field>
      {isChosen &&
        (['from', 'to'] as const).map((side) => (
          <Field key={side} label={side === 'from' ? 'From (UTC)' : 'To (UTC)'}>
            <Input
              type="date"
              value={range[side]}
              onChange={({ target }) => target.value && change({ ...range, [side]: target.value })}
            />
          </Field>
        ))}
      {choices.map(([name, label, all, options]) => (
        <Field key={name} label={label}>
          <Select
            value={search[name] ?? ''}
            onChange={({ target }) => change({ [name]: target.value || undefined })}
          >
            <option value="">{all}</option>
            {[
              ...new Map([[search[name] ?? '', search[name] ?? all], ...options] as [
                string,
                string,
              ][]),
            ]
              .filter(([value]) => value !== '')
              .map(([value, text]) => (
                <option key={value} value={value}>
                  {text}
                </option>
              ))}
          </Select>
        </Field>
      ))}
      {choices.some(([name]) => name in search) && (
        <Button variant="outline" onClick={() => change(none)}>
          Clear filters
        </Button>
      )}
    </div>
  );
}
