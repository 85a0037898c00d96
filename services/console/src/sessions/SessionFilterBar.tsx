import { Search, SlidersHorizontal, X } from 'lucide-react';
import { useEffect, useEffectEvent, useState, type ReactNode } from 'react';
import { Button } from '../components/Button.tsx';
import { Input, Select } from '../components/Field.tsx';
import type { SessionFilters } from './search.ts';
import { useAgents } from './useAgents.ts';

const TYPING_MS = 300;
const MOST_LABELS = 8;

interface FilterProps {
  filters: SessionFilters;
  onChange: (filters: SessionFilters) => void;
}

/** The filters with some of them changed; undefined removes one. */
const changed = (
  filters: SessionFilters,
  changes: { [Name in keyof SessionFilters]: SessionFilters[Name] | undefined },
): SessionFilters =>
  Object.fromEntries(
    Object.entries({ ...filters, ...changes }).filter(([, value]) => value !== undefined),
  );

/** Searches when the reader stops typing, and at once on Enter. */
function SearchField({ filters, onChange }: FilterProps) {
  const [text, setText] = useState(filters.q ?? '');
  const search = useEffectEvent(() => {
    const q = text.trim() || undefined;
    if (q !== filters.q) onChange(changed(filters, { q }));
  });
  useEffect(() => {
    const timer = setTimeout(search, TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <div className="relative flex-1 basis-full sm:basis-56">
      <Search
        aria-hidden
        className="pointer-events-none absolute top-2.5 left-3 size-4 text-muted-foreground"
      />
      <Input
        type="search"
        data-search
        aria-label="Search the texts of sessions"
        placeholder="Words in an input or an answer"
        className="pl-9"
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') event.currentTarget.blur();
        }}
      />
    </div>
  );
}

const Labelled = ({ label, children }: { label: string; children: ReactNode }) => (
  <label className="grid content-start gap-1 text-xs text-muted-foreground">
    {label}
    {children}
  </label>
);

/** A time of RFC 3339 as an input of the type `datetime-local` has it, in local time. */
function localInput(value: string | undefined): string {
  const time = new Date(value ?? NaN);
  if (Number.isNaN(time.getTime())) return '';
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

const TIMES = [
  ['created_from', 'Began at or after'],
  ['created_to', 'Began before'],
  ['updated_from', 'Last event at or after'],
  ['updated_to', 'Last event before'],
] as const;

function LabelFilter({ filters, onChange }: FilterProps) {
  const [text, setText] = useState('');
  const labels = filters.label ?? [];
  const isValid = /^[a-z0-9._-]+:./.test(text);
  const setLabels = (next: string[]): void =>
    onChange(changed(filters, { label: next.length > 0 ? next : undefined }));
  return (
    <div className="grid content-start gap-1">
      <Labelled label="Label (name:value)">
        <Input
          placeholder="customer:4711"
          value={text}
          disabled={labels.length >= MOST_LABELS}
          aria-invalid={text !== '' && !isValid}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || !isValid) return;
            setText('');
            setLabels([...labels.filter((each) => each !== text), text]);
          }}
        />
      </Labelled>
      <ul className="flex flex-wrap gap-1">
        {labels.map((label) => (
          <li key={label}>
            <Button
              variant="outline"
              size="small"
              className="h-7 max-w-56 px-2 text-xs"
              aria-label={`Remove the label ${label}`}
              onClick={() => setLabels(labels.filter((each) => each !== label))}
            >
              <span className="truncate">{label}</span> <X aria-hidden />
            </Button>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Filters that are used less often; open while one of them is set. */
const MORE = [...TIMES.map(([name]) => name), 'label', 'replay_id', 'order'] as const;

/** The search field and the filters of the list; each is part of the address. */
export function SessionFilterBar({ filters, onChange }: FilterProps) {
  const agents = useAgents();
  const countMore = MORE.filter((name) => filters[name] !== undefined).length;
  const [isOpen, setOpen] = useState(countMore > 0);
  const pick =
    (name: 'agent_id' | 'status' | 'outcome' | 'order') =>
    (event: { target: { value: string } }): void =>
      onChange(changed(filters, { [name]: event.target.value || undefined }));
  const isUnknownAgent =
    filters.agent_id !== undefined && !agents.some((each) => each.agent_id === filters.agent_id);
  return (
    <search className="grid gap-2 border-b px-4 py-2.5 md:px-6">
      <div className="flex flex-wrap gap-2">
        <SearchField key={filters.q ?? ''} filters={filters} onChange={onChange} />
        <Select
          aria-label="Agent"
          className="w-auto max-w-48 flex-1 sm:flex-none"
          value={filters.agent_id ?? ''}
          onChange={pick('agent_id')}
        >
          <option value="">All agents</option>
          {isUnknownAgent && <option value={filters.agent_id}>{filters.agent_id}</option>}
          {agents.map(({ agent_id, name }) => (
            <option key={agent_id} value={agent_id}>
              {name}
            </option>
          ))}
        </Select>
        <Select
          aria-label="Status"
          className="w-auto flex-1 sm:flex-none"
          value={filters.status ?? ''}
          onChange={pick('status')}
        >
          <option value="">Any status</option>
          <option value="running">Running</option>
          <option value="idle">Idle</option>
        </Select>
        <Select
          aria-label="Outcome"
          className="w-auto flex-1 sm:flex-none"
          value={filters.outcome ?? ''}
          onChange={pick('outcome')}
        >
          <option value="">Any outcome</option>
          <option value="completed">With a completed turn</option>
          <option value="failed">With a failed turn</option>
          <option value="interrupted">With an interrupted turn</option>
        </Select>
        <Button
          variant="outline"
          aria-expanded={isOpen}
          className="px-3"
          onClick={() => setOpen(!isOpen)}
        >
          <SlidersHorizontal aria-hidden /> More filters{countMore > 0 && ` (${countMore})`}
        </Button>
        {Object.keys(filters).length > 0 && (
          <Button variant="ghost" className="px-3" onClick={() => onChange({})}>
            Clear
          </Button>
        )}
      </div>
      {isOpen && (
        <div className="grid gap-3 py-1 sm:grid-cols-2 lg:grid-cols-3">
          {TIMES.map(([name, label]) => (
            <Labelled key={name} label={label}>
              <Input
                type="datetime-local"
                value={localInput(filters[name])}
                onChange={({ target: { value } }) =>
                  onChange(
                    changed(filters, { [name]: value ? new Date(value).toISOString() : undefined }),
                  )
                }
              />
            </Labelled>
          ))}
          <LabelFilter filters={filters} onChange={onChange} />
          <Labelled label="Order">
            <Select value={filters.order ?? ''} onChange={pick('order')}>
              <option value="">Newest first</option>
              <option value="oldest">Oldest first</option>
            </Select>
          </Labelled>
          {filters.replay_id !== undefined && (
            <p className="text-xs text-muted-foreground">
              Only sessions that the replay <code>{filters.replay_id}</code> made.
            </p>
          )}
        </div>
      )}
    </search>
  );
}
