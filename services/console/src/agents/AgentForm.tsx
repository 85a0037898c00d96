import { useQuery } from '@tanstack/react-query';
import { useId, useRef, useState, type ReactNode, type SubmitEvent } from 'react';
import { ApiError } from '../api/apiError.ts';
import { Button } from '../components/Button.tsx';
import { bindFields, SelectField, TextAreaField, TextField } from '../components/Field.tsx';
import { Alert } from '../components/states.tsx';
import { errorsOf, FIELD_LABELS, fieldsOf, toolsOf } from './agentFields.ts';
import type { AgentDraft, AgentFields, DraftErrors } from './agentFields.ts';
import { modelsQuery, toolsQuery } from './agentQueries.ts';

const FORMATS = [
  ['', 'Any text'],
  ['text', 'Text, set explicitly'],
  ['json_object', 'A JSON object'],
  ['json_schema', 'JSON that matches a schema'],
] as const;

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

interface ToolsFieldProps {
  value: string;
  error: string | undefined;
  onValue: (tool: string) => void;
}

/** The tools that the model may call: built-in ones, and those of tool servers. */
function ToolsField({ value, error, onValue }: ToolsFieldProps) {
  const noteId = useId();
  const { data: tools = [] } = useQuery(toolsQuery);
  const selected = toolsOf({ tool: value });
  const known = new Map(selected.map((name) => [name, 'Not available at present.']));
  for (const { name, description } of tools) known.set(name, description);
  const change = (name: string) => (isChecked: boolean) => {
    const others = selected.filter((each) => each !== name);
    onValue((isChecked ? [...others, name] : others).join(','));
  };
  return (
    <fieldset aria-describedby={noteId} className="grid gap-1.5">
      <legend className="mb-1.5 font-medium">{FIELD_LABELS.tool}</legend>
      <div className="max-h-64 overflow-y-auto rounded-md border p-1">
        {[...known].map(([name, description]) => (
          <Check
            key={name}
            label={<code className="break-all">{name}</code>}
            hint={description}
            isChecked={selected.includes(name)}
            onChange={change(name)}
          />
        ))}
      </div>
      <p id={noteId} className={`text-xs ${error ? 'text-destructive' : 'text-muted-foreground'}`}>
        {error ?? 'A name such as mcp:files stands for all tools of that server.'}
      </p>
    </fieldset>
  );
}

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
  const showError = (error: Error): void => {
    const details = error instanceof ApiError && error.details;
    const found =
      error instanceof SyntaxError
        ? { schema: `This is not JSON: ${error.message}` }
        : errorsOf(details);
    setErrors(found);
    setProblem(Object.keys(found).length > 0 ? 'Some fields need a change.' : error.message);
    requestAnimationFrame(() =>
      form.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus(),
    );
  };
  const save = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    setSaving(true);
    setErrors({});
    setProblem(undefined);
    try {
      await onSave(fieldsOf(draft));
    } catch (error) {
      showError(error as Error);
    }
    setSaving(false);
  };
  const change = (changes: Partial<AgentDraft>): void => setDraft({ ...draft, ...changes });
  const bind = bindFields(draft, change, errors);
  const field = (name: keyof AgentFields & keyof AgentDraft) => ({
    label: FIELD_LABELS[name],
    ...bind(name),
  });
  const model = models.find(({ id }) => id === draft.model);
  const offered = models.map(({ id }) => [id, id] as const);
  const missing = [draft.model, `${draft.model} (not available)`] as const;
  return (
    <form
      ref={form}
      noValidate
      onSubmit={(event) => void save(event)}
      className="mx-auto grid max-w-3xl gap-5"
    >
      <TextField {...field('name')} />
      <TextAreaField
        hint="What the model is to do, and how. It precedes each conversation."
        className="min-h-40"
        {...field('instruction')}
      />
      <div className="grid gap-4 sm:grid-cols-3">
        <SelectField
          hint={model && `${model.provider} · ${model.context_window.toLocaleString()} tokens`}
          options={model ? offered : [missing, ...offered]}
          {...field('model')}
        />
        <TextField
          type="number"
          step="any"
          hint="0 to 2; empty: as the provider has it"
          {...field('temperature')}
        />
        <TextField
          type="number"
          hint="Of one answer; empty: as the model has it"
          {...field('max_output_tokens')}
        />
      </div>
      <ToolsField {...bind('tool')} />
      <SelectField label={FIELD_LABELS.response_format} options={FORMATS} {...bind('format')} />
      {draft.format === 'json_schema' && (
        <div className="grid gap-4 border-l-2 pl-4">
          <TextField label="Name of the schema" {...bind('schema_name')} />
          <TextAreaField
            label="JSON Schema"
            className="min-h-48 font-mono text-xs"
            {...bind('schema')}
          />
          <Check
            label="The provider enforces the schema (strict)"
            isChecked={draft.strict}
            onChange={(strict) => change({ strict })}
          />
        </div>
      )}
      <TextField
        hint="Names the UI component that shows the agent in your own application; Chat by default."
        {...field('component')}
      />
      <Check
        label="Summarise older turns before they fall out of the context"
        hint="The model writes the summaries, which costs tokens."
        isChecked={draft.compaction}
        onChange={(compaction) => change({ compaction })}
      />
      {problem && <Alert title={problem} />}
      {notice}
      <Button type="submit" disabled={isSaving} className="justify-self-start">
        {action}
      </Button>
    </form>
  );
}
