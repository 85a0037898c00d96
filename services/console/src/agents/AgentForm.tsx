import { useQuery } from '@tanstack/react-query';
import { useId, useRef, useState, type ReactNode, type SubmitEvent } from 'react';
import { ApiError } from '../api/apiError.ts';
import { Button } from '../components/Button.tsx';
import { Field, Input, Select, Textarea } from '../components/Field.tsx';
import { Alert } from '../components/states.tsx';
import {
  bodyOf,
  errorsOf,
  type AgentBody,
  type AgentDraft,
  type DraftErrors,
} from './agentDraft.ts';
import { modelsQuery, toolsQuery } from './agentQueries.ts';

const MOST_TOOLS_SHOWN = 60;

interface ToolsFieldProps {
  selected: readonly string[];
  error: string | undefined;
  onChange: (tools: string[]) => void;
}

/** The tools that the model may call: built-in ones, and those of tool servers. */
function ToolsField({ selected, error, onChange }: ToolsFieldProps) {
  const noteId = useId();
  const tools = useQuery(toolsQuery);
  const [filter, setFilter] = useState('');
  const known = new Map(tools.data?.map((tool) => [tool.name, tool.description]));
  for (const name of selected)
    if (!known.has(name)) known.set(name, tools.data ? 'It is not available at present.' : '');
  const matching = [...known].filter(
    ([name, description]) =>
      selected.includes(name) ||
      `${name} ${description}`.toLowerCase().includes(filter.toLowerCase()),
  );
  return (
    <fieldset aria-describedby={noteId} className="grid gap-1.5">
      <legend className="mb-1.5 font-medium">Tools</legend>
      {known.size > 8 && (
        <Input
          type="search"
          aria-label="Filter the tools"
          placeholder="Filter the tools"
          value={filter}
          onChange={({ target }) => setFilter(target.value)}
        />
      )}
      <div
        tabIndex={0}
        role="group"
        aria-label="Available tools"
        className="max-h-64 overflow-y-auto rounded-md border p-1"
      >
        {matching.slice(0, MOST_TOOLS_SHOWN).map(([name, description]) => (
          <label key={name} className="flex gap-2.5 rounded px-2 py-1.5 hover:bg-muted">
            <input
              type="checkbox"
              className="mt-0.5 size-4 shrink-0"
              checked={selected.includes(name)}
              onChange={({ target }) =>
                onChange(
                  target.checked ? [...selected, name] : selected.filter((each) => each !== name),
                )
              }
            />
            <span className="min-w-0">
              <code className="break-all">{name}</code>
              <span className="line-clamp-2 text-xs text-muted-foreground">{description}</span>
            </span>
          </label>
        ))}
        {matching.length === 0 && (
          <p className="px-2 py-1.5 text-muted-foreground">
            {tools.isPending ? 'Loading…' : 'No tool matches.'}
          </p>
        )}
      </div>
      <p id={noteId} className={`text-xs ${error ? 'text-destructive' : 'text-muted-foreground'}`}>
        {error ??
          (matching.length > MOST_TOOLS_SHOWN
            ? `${matching.length - MOST_TOOLS_SHOWN} more; filter to see them.`
            : 'A name such as mcp:files stands for all tools of that server.')}
      </p>
    </fieldset>
  );
}

interface SectionProps {
  draft: AgentDraft;
  errors: DraftErrors;
  change: (changes: Partial<AgentDraft>) => void;
}

function ModelFields({ draft, errors, change }: SectionProps) {
  const models = useQuery(modelsQuery);
  const ids = models.data?.map(({ id }) => id) ?? [];
  const model = models.data?.find(({ id }) => id === draft.model);
  return (
    <div className="grid gap-4 sm:grid-cols-3">
      <Field
        label="Model"
        error={errors.model}
        hint={
          model && `${model.provider} · context of ${model.context_window.toLocaleString()} tokens`
        }
      >
        <Select value={draft.model} onChange={({ target }) => change({ model: target.value })}>
          {!ids.includes(draft.model) && (
            <option value={draft.model}>
              {draft.model === '' ? 'Choose a model' : `${draft.model} (not available)`}
            </option>
          )}
          {ids.map((id) => (
            <option key={id}>{id}</option>
          ))}
        </Select>
      </Field>
      <Field
        label="Temperature"
        error={errors.temperature}
        hint="0 to 2; empty: as the provider has it"
      >
        <Input
          type="number"
          step="any"
          value={draft.temperature}
          onChange={({ target }) => change({ temperature: target.value })}
        />
      </Field>
      <Field
        label="Most output tokens"
        error={errors.maxOutputTokens}
        hint="Of one answer; empty: as the model has it"
      >
        <Input
          type="number"
          value={draft.maxOutputTokens}
          onChange={({ target }) => change({ maxOutputTokens: target.value })}
        />
      </Field>
    </div>
  );
}

const FORMATS = [
  ['', 'Any text'],
  ['text', 'Text, set explicitly'],
  ['json_object', 'A JSON object'],
  ['json_schema', 'JSON that matches a schema'],
] as const;

function FormatFields({ draft, errors, change }: SectionProps) {
  return (
    <>
      <Field label="Response format" error={errors.format}>
        <Select
          value={draft.format}
          onChange={({ target }) => change({ format: target.value as AgentDraft['format'] })}
        >
          {FORMATS.map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </Select>
      </Field>
      {draft.format === 'json_schema' && (
        <div className="grid gap-4 border-l-2 pl-4">
          <Field label="Name of the schema" error={errors.schemaName}>
            <Input
              value={draft.schemaName}
              onChange={({ target }) => change({ schemaName: target.value })}
            />
          </Field>
          <Field label="JSON Schema" error={errors.schema}>
            <Textarea
              spellCheck={false}
              className="min-h-48 font-mono text-xs"
              value={draft.schema}
              onChange={({ target }) => change({ schema: target.value })}
            />
          </Field>
          <label className="flex items-center gap-2.5">
            <input
              type="checkbox"
              className="size-4"
              checked={draft.isStrict}
              onChange={({ target }) => change({ isStrict: target.checked })}
            />
            The provider enforces the schema (strict)
          </label>
        </div>
      )}
    </>
  );
}

interface AgentFormProps {
  initial: AgentDraft;
  action: string;
  /** Stores the agent. Its errors are shown, those with `details` at their fields. */
  onSave: (body: AgentBody) => Promise<void>;
  /** More about why it was not saved. */
  notice?: ReactNode;
  /** More buttons, after the one that saves. */
  children?: ReactNode;
}

/** The form of an agent: all fields that the API has. */
export function AgentForm({ initial, action, onSave, notice, children }: AgentFormProps) {
  const [draft, setDraft] = useState(initial);
  const [errors, setErrors] = useState<DraftErrors>({});
  const [problem, setProblem] = useState<string>();
  const [isSaving, setSaving] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const change = (changes: Partial<AgentDraft>): void => setDraft({ ...draft, ...changes });

  const showErrors = (found: DraftErrors, message?: string): void => {
    setErrors(found);
    const isAtField = Object.keys(found).length > 0;
    setProblem(isAtField ? 'Some fields need a change.' : message);
    requestAnimationFrame(() =>
      form.current
        ?.querySelector<HTMLElement>('[aria-invalid=true]:is(input, select, textarea)')
        ?.focus(),
    );
  };
  const save = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const parsed = bodyOf(draft);
    if ('errors' in parsed) return showErrors(parsed.errors);
    setSaving(true);
    setErrors({});
    setProblem(undefined);
    try {
      await onSave(parsed.body);
    } catch (error) {
      const details = error instanceof ApiError ? errorsOf(error.details) : {};
      showErrors(details, (error as Error).message);
    } finally {
      setSaving(false);
    }
    return undefined;
  };
  const section: SectionProps = { draft, errors, change };
  return (
    <form
      ref={form}
      noValidate
      onSubmit={(event) => void save(event)}
      className="mx-auto grid max-w-3xl gap-5"
    >
      <Field label="Name" error={errors.name}>
        <Input value={draft.name} onChange={({ target }) => change({ name: target.value })} />
      </Field>
      <Field
        label="Instruction"
        error={errors.instruction}
        hint="What the model is to do, and how. It precedes each conversation."
      >
        <Textarea
          className="min-h-40"
          value={draft.instruction}
          onChange={({ target }) => change({ instruction: target.value })}
        />
      </Field>
      <ModelFields {...section} />
      <ToolsField
        selected={draft.tools}
        error={errors.tools}
        onChange={(tools) => change({ tools })}
      />
      <FormatFields {...section} />
      <Field
        label="Component"
        error={errors.component}
        hint="Names the UI component that shows the agent in your own application; Chat by default."
      >
        <Input
          placeholder="Chat"
          value={draft.component}
          onChange={({ target }) => change({ component: target.value })}
        />
      </Field>
      <label className="flex items-start gap-2.5">
        <input
          type="checkbox"
          className="mt-0.5 size-4"
          checked={draft.compaction}
          onChange={({ target }) => change({ compaction: target.checked })}
        />
        <span>
          Summarise older turns before they fall out of the context
          <span className="block text-xs text-muted-foreground">
            The model writes the summaries, which costs tokens.
          </span>
        </span>
      </label>
      {problem && <Alert title={problem} />}
      {notice}
      <div className="flex flex-wrap gap-2 border-t pt-4">
        <Button type="submit" disabled={isSaving}>
          {isSaving ? 'Saving…' : action}
        </Button>
        {children}
      </div>
    </form>
  );
}
