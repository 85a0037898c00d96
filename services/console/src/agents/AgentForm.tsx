import { useMutation, useQuery } from '@tanstack/react-query';
import { useEffect, useRef, useState, type ReactNode, type SubmitEvent } from 'react';
import { ApiError } from '../api/apiError.ts';
import { Button } from '../components/Button.tsx';
import { bindFields, SelectField, TextAreaField, TextField } from '../components/Field.tsx';
import { Alert } from '../components/view.tsx';
import { errorsOf, FIELD_LABELS, fieldsOf } from './agentFields.ts';
import type { AgentDraft, AgentFields, DraftErrors } from './agentFields.ts';
import { modelsQuery, toolsQuery } from './agentQueries.ts';

const SCHEMA = 'response_format/json_schema';
const FORMATS = [
  ['', 'Any text'],
  ['text', 'Text, set explicitly'],
  ['json_object', 'A JSON object'],
  ['json_schema', 'JSON that matches a schema'],
] as const;

const ENFORCEMENTS = [
  ['', 'Turnlog, which checks the answer'],
  ['true', 'The provider, too (strict)'],
] as const;
const COMPACTIONS = [
  ['', 'Older turns fall out of the context'],
  ['true', 'The model summarises older turns, which costs tokens'],
] as const;

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
  const { data: models = [] } = useQuery(modelsQuery);
  const { data: tools = [] } = useQuery(toolsQuery);
  const [draft, setDraft] = useState(initial);
  const form = useRef<HTMLFormElement>(null);
  const { mutate, isPending, error } = useMutation({
    mutationFn: async () => onSave(fieldsOf(draft)),
  });
  useEffect(() => {
    if (error) form.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus();
  }, [error]);
  const errors: DraftErrors =
    error instanceof SyntaxError
      ? { [SCHEMA]: `This is not JSON: ${error.message}` }
      : errorsOf(error instanceof ApiError && error.details);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    mutate();
  };
  const change = (changes: Partial<AgentDraft>): void => setDraft({ ...draft, ...changes });
  const bind = bindFields(draft, change, errors);
  const field = (name: keyof AgentFields) => ({ label: FIELD_LABELS[name], ...bind(name) });
  const model = models.find(({ id }) => id === draft.model);
  const offered = models.map(({ id }) => [id, id] as const);
  const missing = [draft.model, `${draft.model} (not available)`] as const;
  return (
    <form ref={form} noValidate onSubmit={submit} className="mx-auto grid max-w-3xl gap-5">
      <TextField {...field('name')} />
      <TextAreaField
        hint="The task of the model. It precedes each conversation."
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
      <TextField
        hint={`Names with commas. Available: ${tools.map(({ name }) => name).join(', ') || 'none'}. A name such as mcp:files stands for all tools of that server.`}
        {...field('tool')}
      />
      <SelectField options={FORMATS} {...field('response_format')} />
      {draft.response_format === 'json_schema' && (
        <div className="grid gap-4 border-l-2 pl-4">
          <TextField label="Name of the schema" {...bind(`${SCHEMA}/name`)} />
          <TextAreaField
            label="JSON Schema"
            className="min-h-48 font-mono text-xs"
            {...bind(SCHEMA)}
          />
          <SelectField
            label="The schema is enforced by"
            options={ENFORCEMENTS}
            {...bind(`${SCHEMA}/strict`)}
          />
        </div>
      )}
      <TextField
        hint="Names the UI component that shows the agent in your own application; Chat by default."
        {...field('component')}
      />
      <SelectField options={COMPACTIONS} {...field('compaction')} />
      {error && (
        <Alert
          title={Object.keys(errors).length > 0 ? 'Some fields need a change.' : error.message}
        />
      )}
      {notice}
      <Button variant="primary" type="submit" disabled={isPending} className="justify-self-start">
        {action}
      </Button>
    </form>
  );
}
