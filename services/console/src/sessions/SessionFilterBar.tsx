import { useNavigate, useSearch } from '@tanstack/react-router';
import { Search, SlidersHorizontal } from 'lucide-react';
import { useEffect, useEffectEvent, useState } from 'react';
import { Button } from '../components/Button.tsx';
import { Input, Select, TextField } from '../components/Field.tsx';
import type { SessionFilters } from './search.ts';
import { useAgentNames } from '../agents/agentQueries.ts';

const TYPING_MS = 300;
const MOST_LABELS = 8;
const STATUSES = [
  ['', 'Any status'],
  ['running', 'Running'],
  ['idle', 'Idle'],
] as const;
const OUTCOMES = [
  ['', 'Any outcome'],
  ['completed', 'With a completed turn'],
  ['failed', 'With a failed turn'],
  ['interrupted', 'With an interrupted turn'],
] as const;
const TIMES = [
  ['created_from', 'Began at or after'],
  ['created_to', 'Began before'],
  ['updated_from', 'Last event at or after'],
  ['updated_to', 'Last event before'],
] as const;
/** Filters that are used less often; open while one of them is set. */
const MORE = [...TIMES.map(([name]) => name), 'label', 'replay_id'] as const;

/** A time of RFC 3339 as an input of the type `datetime-local` has it, in local time. */
function localInput(value: string | undefined): string {
  const time = new Date(value ?? NaN);
  if (Number.isNaN(time.getTime())) return '';
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** The text of a field, which is applied when the reader stops typing. */
function useTyped(applied: string, apply: (text: string) => void) {
  const [text, setText] = useState(applied);
  const [known, setKnown] = useState(applied);
  if (applied !== known) {
    setKnown(applied);
    if (applied !== text.trim()) setText(applied);
  }
  const applyText = useEffectEvent(() => text.trim() !== applied && apply(text.trim()));
  useEffect(() => {
    const timer = setTimeout(applyText, TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return [text, setText] as const;
}

/** Labels in a text such as `customer:4711, tier:gold`. */
const labelsOf = (text: string): string[] => text.split(/\s*,\s*(?=[a-z0-9._-]+:)/).filter(Boolean);
const isLabel = (text: string): boolean => /^[a-z0-9._-]+:./.test(text);

/** The search field and the filters of the list; each is part of the address. */
export function SessionFilterBar() {
  const filters = useSearch({ from: '/sessions' });
  const navigate = useNavigate({ from: '/sessions' });
  const onChange = (search: SessionFilters): void => void navigate({ search, replace: true });
  const agents = useAgentNames();
  const countMore = MORE.filter((name) => filters[name] !== undefined).length;
  const [isOpen, setOpen] = useState(countMore > 0);
  /** Sets one filter; an empty value removes it. */
  const set = (name: keyof SessionFilters, value: string | string[]): void => {
    const { [name]: _, ...others } = filters;
    onChange(value.length > 0 ? { ...others, [name]: value } : others);
  };
  const [q, setQ] = useTyped(filters.q ?? '', (text) => set('q', text));
  const [label, setLabel] = useTyped(filters.label?.join(', ') ?? '', (text) => {
    const labels = labelsOf(text);
    if (labels.every(isLabel)) set('label', labels.slice(0, MOST_LABELS));
  });
  const { agent_id: chosen = '' } = filters;
  // The agent of an address may have no known name.
  const named = new Map([['', 'All agents'], [chosen, chosen || 'All agents'], ...agents]);
  const choices = [
    ['agent_id', 'Agent', [...named]],
    ['status', 'Status', STATUSES],
    ['outcome', 'Outcome', OUTCOMES],
  ] as const;
  return (
    <search className="grid gap-2 border-b px-4 py-2.5 md:px-6">
      <div className="flex flex-wrap gap-2">
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
            value={q}
            onChange={({ target }) => setQ(target.value)}
            onKeyDown={({ key, currentTarget }) => key === 'Escape' && currentTarget.blur()}
          />
        </div>
        {choices.map(([name, title, options]) => (
          <Select
            key={name}
            aria-label={title}
            className="w-auto max-w-48 flex-1 sm:flex-none"
            value={filters[name] ?? ''}
            options={options}
            onChange={({ target }) => set(name, target.value)}
          />
        ))}
        <Button aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          <SlidersHorizontal aria-hidden /> More filters{countMore > 0 && ` (${countMore})`}
        </Button>
        {Object.keys(filters).length > 0 && (
          <Button variant="ghost" onClick={() => onChange({})}>
            Clear
          </Button>
        )}
      </div>
      {isOpen && (
        <div className="grid gap-3 py-1 sm:grid-cols-2 lg:grid-cols-3">
          {TIMES.map(([name, title]) => (
            <TextField
              key={name}
              label={title}
              type="datetime-local"
              value={localInput(filters[name])}
              onValue={(value) => set(name, value && new Date(value).toISOString())}
            />
          ))}
          <TextField
            label="Labels"
            placeholder="customer:4711, tier:gold"
            error={
              labelsOf(label).every(isLabel) ? undefined : 'Write name:value, in small letters'
            }
            value={label}
            onValue={setLabel}
          />
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
