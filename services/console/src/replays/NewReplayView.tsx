import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useDeferredValue, useState, type FormEvent, type ReactNode } from 'react';
import { modelsQuery, useAgentNames } from '../agents/agentQueries.ts';
import { api, dataOf, pageOf, type Schema } from '../api/client.ts';
import { newIdempotencyKey } from '../api/idempotencyKey.ts';
import { toCurl } from '../api/requestLog.ts';
import { Button, CopyButton } from '../components/Button.tsx';
import { formatNumber } from '../sessions/session/format.ts';
import { bindFields, SelectField, TextAreaField, TextField } from '../components/Field.tsx';
import { Card, ErrorState, View } from '../components/view.tsx';
import { filterOf, toReplayBody, type ReplayForm } from './replayForm.ts';

const route = getRouteApi('/replays/new');
const MOST_LISTED = 1_000;
const TOOLS = [
  ['recorded', 'As recorded: no tool is called'],
  ['live', 'From the tools, which are called'],
] as const;
const MISSING_TOOLS = [
  ['stop', 'End the replay of the session'],
  ['live', 'Call the tool'],
  ['error-result', 'Tell the model of an error'],
] as const;
const CHECKS_HINT =
  'For example [{"contains": "42"}, {"judge": {"model": "…", "criteria": "It names the price."}}]';

const Part = ({ title, children }: { title: string; children: ReactNode }) => (
  <Card>
    <fieldset className="grid grid-cols-[minmax(0,1fr)] items-start gap-4 md:grid-cols-3 [&>:has(textarea)]:md:col-span-3">
      <legend className="float-left font-medium md:col-span-3">{title}</legend>
      {children}
    </fieldset>
  </Card>
);

/** How many sessions and turns a filter matches. */
function Matches({ form }: { form: ReplayForm }) {
  const filter = useDeferredValue(JSON.stringify(filterOf(form)));
  const { data } = useQuery({
    queryKey: ['sessions', 'matches', filter],
    queryFn: () => {
      const query = { ...(JSON.parse(filter) as Schema<'SessionsToReplay'>), limit: MOST_LISTED };
      return pageOf(api.GET('/v1/sessions', { params: { query } }));
    },
    enabled: !form['sessions'] || filter !== '{}',
  });
  const turns = data?.rows.reduce((sum, { turn_count }) => sum + turn_count, 0) ?? 0;
  const count = data?.rows.length ?? 0;
  return (
    <p role="status" className="min-h-5 text-muted-foreground tabular-nums md:col-span-3">
      {data &&
        `The filter matches ${data.next ? 'more than ' : ''}${formatNumber(count)} sessions with ${formatNumber(turns)} turns. A replay takes up to 2,000 sessions.`}
    </p>
  );
}

/** Starts a replay: which sessions, and what is different this time. */
export function NewReplayView() {
  const { session = '', turn } = route.useSearch();
  const navigate = useNavigate();
  const client = useQueryClient();
  const agents = useAgentNames();
  const models = useQuery(modelsQuery).data ?? [];
  const [key, setKey] = useState(newIdempotencyKey);
  const [form, setForm] = useState<ReplayForm>({
    sessions: session.replaceAll(',', '\n'),
    from: turn === undefined ? '' : String(turn),
    budget: '1000000',
    concurrency: '1',
  });
  const body = toReplayBody(form) as Schema<'StartReplayRequest'> | undefined;
  const start = useMutation({
    mutationFn: (sent: NonNullable<typeof body>) => {
      const header = { 'Idempotency-Key': key };
      return dataOf(api.POST('/v1/replays', { params: { header }, body: sent }));
    },
    onSuccess: async ({ replay_id: replayId }) => {
      void client.invalidateQueries({ queryKey: ['replays', 'list'] });
      await navigate({ to: '/replays/$replayId', params: { replayId } });
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (body) start.mutate(body);
  };
  const change = (changes: Partial<ReplayForm>): void => {
    setForm({ ...form, ...changes } as ReplayForm);
    // Another request is not a repetition of the one before.
    setKey(newIdempotencyKey());
  };
  const bind = bindFields(form, change, {
    ...(!body && { checks: 'This is not JSON. Write a list such as [{"contains": "42"}].' }),
  });
  const input = (label: string, name: string, min?: number) => (
    <TextField label={label} {...(min !== undefined && { type: 'number', min })} {...bind(name)} />
  );
  const choice = (label: string, name: string, options: readonly (readonly [string, string])[]) => (
    <SelectField label={label} options={options} {...bind(name)} />
  );
  const area = (label: string, name: string, hint: string) => (
    <TextAreaField label={label} hint={hint} {...bind(name)} />
  );
  const price = models.find(({ id }) => id === form['model'])?.price;
  return (
    <View
      title="New replay"
      description="Runs recorded sessions again in new sessions, and compares the answers."
    >
      <form onSubmit={submit} className="mx-auto grid max-w-5xl grid-cols-[minmax(0,1fr)] gap-4">
        <Part title="Sessions">
          {area('Ids of sessions', 'sessions', 'One per line. Empty: all that match the filter.')}
          {choice('Agent', 'filter_agent', [['', 'All agents'], ...agents])}
          {input('Words of a turn', 'q')}
          {input('Label, such as customer:4711', 'label')}
          <Matches form={form} />
          {input('First turn', 'from', 1)}
          {input('Last turn', 'up_to', 1)}
        </Part>
        <Part title="What changes">
          {choice('Run by agent', 'agent_id', [['', 'The agent of each session'], ...agents])}
          {input('Revision of the agent', 'agent_revision', 0)}
          {choice('Model', 'model', [
            ['', 'As recorded'],
            ...models.map(({ id }) => [id, id] as const),
          ])}
          {price && (
            <p className="md:col-span-3">
              A million tokens cost {price.input_per_million} {price.currency} in the prompt and{' '}
              {price.output_per_million} {price.currency} in the answer.
            </p>
          )}
          {area('Instruction', 'instruction', 'Empty: as recorded.')}
        </Part>
        <Part title="Limits and checks">
          {choice('Tool results', 'tools', TOOLS)}
          {choice('Calls that are not recorded', 'missing_tools', MISSING_TOOLS)}
          {input('Token budget', 'budget', 1)}
          {input('Sessions at a time', 'concurrency', 1)}
          {area('Checks of each answer, as JSON', 'checks', CHECKS_HINT)}
        </Part>
        {start.error && <ErrorState error={start.error} />}
        <div className="flex flex-wrap justify-end gap-2">
          {body && (
            <CopyButton
              text={toCurl({
                method: 'POST',
                url: `${location.origin}/v1/replays`,
                body: JSON.stringify(body),
                headers: { 'content-type': 'application/json' },
              })}
              label="Copy as curl"
            />
          )}
          <Button variant="primary" type="submit" disabled={start.isPending || !body}>
            Start replay
          </Button>
        </div>
      </form>
    </View>
  );
}
