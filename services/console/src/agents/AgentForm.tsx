import { useQuery } from '@tanstack/react-query';
import {
  useId,
  useRef,
  useState,
  type ReactElement,
  type ReactNode,
  type SubmitEvent,
} from 'react';
import { ApiError } from '../api/apiError.ts';
import { Button } from '../components/Button.tsx';
import { Field, Input, Select, Textarea } from '../components/Field.tsx';
import { Alert } from '../components/states.tsx';
import {
  errorsOf,
  fieldsOf,
  toolsOf,
  type AgentDraft,
  type AgentFields,
  type DraftErrors,
} from './agentDraft.ts';
import { modelsQuery, toolsQuery } from './agentQueries.ts';
import { FIELD_LABELS } from './revisionDiff.ts';

type Control = Parameters<typeof Field>[0]['children'];

const MOST_TOOLS_SHOWN = 60;

interface ToolsFieldProps {
  value: string;
  error: string | undefined;
  onChange: (tool: string) => void;
}

/** The tools that the model may call: built-in ones, and those of tool servers. */
function ToolsField({ value, error, onChange }: ToolsFieldProps) {
  const noteId = useId();
  const { data } = useQuery(toolsQuery);
  const [filter, setFilter] = useState('');
  const selected = toolsOf({ tool: value });
  const known = new Map(data?.map(({ name, description }) => [name, description]));
  for (const name of selected) if (!known.has(name)) known.set(name, 'Not available at present.');
  const isShown = ([name, description]: [string, string]): boolean =>
    selected.includes(name) ||
    `${name} ${description}`.toLowerCase().includes(filter.toLowerCase());
  const shown = [...known].filter(isShown);
  return (
    <fieldset aria-describedby={noteId} className="grid gap-1.5">
      <legend className="mb-1.5 font-medium">Tools</legend>
      {known.size > 8 && (
        <Input
          type="search"
          aria-label="Filter the tools"
          placeholder="Filter the tools"
          onChange={({ target }) => setFilter(target.value)}
        />
      )}
      <div className="max-h-64 overflow-y-auto rounded-md border p-1">
        {shown.slice(0, MOST_TOOLS_SHOWN).map(([name, description]) => (
          <Check
            key={name}
            label={<code className="break-all">{name}</code>}
            hint={description}
            isChecked={selected.includes(name)}
            onChange={(isChecked) => {
              const others = selected.filter((each) => each !== name);
              onChange((isChecked ? [...others, name] : others).join(','));
            }}
          />
        ))}
      </div>
      <p id={noteId} className={`text-xs ${error ? 'text-destructive' : 'text-muted-foreground'}`}>
        {error ?? 'A name such as mcp:files stands for all tools of that server.'}
        {shown.length > MOST_TOOLS_SHOWN && ' There are more tools: filter to see them.'}
      </p>
    </fieldset>
  );
}

interface CheckProps {
  label: ReactNode;
  hint?: string;
  isChecked: boolean;
  onChange: (isChecked: boolean) => void;
}

const Check = ({ label, hint, isChecked, onChange }: CheckProps) => (
  <label className="flex gap-2.5 rounded px-2 py-1.5 hover:bg-muted">
    <input
      type="checkbox"
      className="mt-0.5 size-4 shrink-0"
      checked={isChecked}
      onChange={({ target }) => onChange(target.checked)}
    />
    <span className="min-w-0">
      {label}
      <span className="line-clamp-2 text-xs text-muted-foreground">{hint}</span>
    </span>
  </label>
);

interface AgentFormProps {
  initial: AgentDraft;
  action: string;
  /** Stores the agent. Its errors are shown, those with `details` at their fields. */
  onSave: (fields: AgentFields) => Promise<void>;
  /** More about why it was not saved. */
  notice?: ReactNode;
}

/** The form of an agent: all fields that the API has. */
export function AgentForm({ initial, action, onSave, notice }: AgentFormProps) {
  const models = useQuery(modelsQuery).data ?? [];
  const [draft, setDraft] = useState(initial);
  const [errors, setErrors] = useState<DraftErrors>({});
  const [problem, setProblem] = useState<string>();
  const [isSaving, setSaving] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const save = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    setSaving(true);
    setErrors({});
    setProblem(undefined);
    try {
      await onSave(fieldsOf(draft));
    } catch (error) {
      const message = (error as Error).message;
      const isSyntax = error instanceof SyntaxError;
      const found = isSyntax
        ? { schema: `This is not JSON: ${message}` }
        : errorsOf(error instanceof ApiError && error.details);
      setErrors(found);
      setProblem(Object.keys(found).length > 0 ? 'Some fields need a change.' : message);
      requestAnimationFrame(() =>
        form.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus(),
      );
    }
    setSaving(false);
  };
  const set = (name: keyof AgentDraft) => (value: string | boolean) =>
    setDraft({ ...draft, [name]: value });
  const bind = (name: keyof AgentDraft) => ({
    value: String(draft[name]),
    onChange: ({ target }: { target: { value: string } }) => set(name)(target.value),
  });
  const field = (name: keyof AgentDraft & keyof AgentFields, hint: string, control: Control) => (
    <Field label={FIELD_LABELS[name]} hint={hint} error={errors[name]}>
      {control}
    </Field>
  );
  const model = models.find(({ id }) => id === draft.model);
  return (
    <form
      ref={form}
      noValidate
      onSubmit={(event) => void save(event)}
      className="mx-auto grid max-w-3xl gap-5"
    >
      {field('name', '', <Input {...bind('name')} />)}
      {field(
        'instruction',
        'What the model is to do, and how. It precedes each conversation.',
        <Textarea className="min-h-40" {...bind('instruction')} />,
      )}
      <div className="grid gap-4 sm:grid-cols-3">
        {field(
          'model',
          model ? `${model.provider} · ${model.context_window.toLocaleString()} tokens` : '',
          <Select {...bind('model')}>
            {!model && <option value={draft.model}>{draft.model} (not available)</option>}
            {models.map(({ id }) => (
              <option key={id}>{id}</option>
            ))}
          </Select>,
        )}
        {field(
          'temperature',
          '0 to 2; empty: as the provider has it',
          <Input type="number" step="any" {...bind('temperature')} />,
        )}
        {field(
          'max_output_tokens',
          'Of one answer; empty: as the model has it',
          <Input type="number" {...bind('max_output_tokens')} />,
        )}
      </div>
      <ToolsField value={draft.tool} error={errors.tool} onChange={set('tool')} />
      <Field label={FIELD_LABELS.response_format} error={errors.format}>
        <Select {...bind('format')}>
          <option value="">Any text</option>
          <option value="text">Text, set explicitly</option>
          <option value="json_object">A JSON object</option>
          <option value="json_schema">JSON that matches a schema</option>
        </Select>
      </Field>
      {draft.format === 'json_schema' && (
        <div className="grid gap-4 border-l-2 pl-4">
          <Field label="Name of the schema" error={errors.schema_name}>
            <Input {...bind('schema_name')} />
          </Field>
          <Field label="JSON Schema" error={errors.schema}>
            <Textarea className="min-h-48 font-mono text-xs" {...bind('schema')} />
          </Field>
          <Check
            label="The provider enforces the schema (strict)"
            isChecked={draft.strict}
            onChange={set('strict')}
          />
        </div>
      )}
      {field(
        'component',
        'Names the UI component that shows the agent in your own application; Chat by default.',
        <Input placeholder="Chat" {...bind('component')} />,
      )}
      <Check
        label="Summarise older turns before they fall out of the context"
        hint="The model writes the summaries, which costs tokens."
        isChecked={draft.compaction}
        onChange={set('compaction')}
      />
      {problem && <Alert title={problem} />}
      {notice}
      <Button type="submit" disabled={isSaving} className="justify-self-start">
        {isSaving ? 'Saving…' : action}
      </Button>
    </form>
  );
}
