import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useEffect, useState, type FormEvent } from 'react';
import { api, dataOf, pageOf, type Schema } from '../api/client.ts';
import { newIdempotencyKey } from '../api/idempotencyKey.ts';
import { toCurl } from '../api/requestLog.ts';
import { modelsQuery } from '../agents/agentQueries.ts';
import { Button } from '../components/Button.tsx';
import { formatCount } from '../components/charts/ChartFrame.tsx';
import { CopyButton } from '../components/CopyButton.tsx';
import { Field, Input, Select, Textarea } from '../components/Field.tsx';
import { View } from '../components/layout.tsx';
import { ErrorState } from '../components/states.tsx';
import { ChecksPart } from './ChecksPart.tsx';
import { ModelOptions, Part, type PartProps } from './formParts.tsx';
import { useAgents } from '../sessions/useAgents.ts';
import {
  emptyDraft,
  findProblems,
  sessionIdsOf,
  toBody,
  toFilter,
  type ReplayDraft,
} from './replayDraft.ts';

const route = getRouteApi('/replays/new');

/** Sessions that are looked at to say how much a filter matches. */
const MOST_LISTED = 1_000;
const TYPING_MS = 300;

/** A value once it has not changed for a moment. */
function useSettled<Value>(value: Value): Value {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), TYPING_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

/** How many sessions and turns a filter matches. */
function MatchedSessions({ draft }: { draft: ReplayDraft }) {
  const filter = useSettled(JSON.stringify(toFilter(draft)));
  const { data, error } = useQuery({
    queryKey: ['sessions', 'matched', filter],
    queryFn: async () => {
      const query = { ...(JSON.parse(filter) as ReturnType<typeof toFilter>), limit: MOST_LISTED };
      return pageOf(api.GET('/v1/sessions', { params: { query } }));
    },
  });
  const count = data?.rows.length ?? 0;
  const turns = data?.rows.reduce((sum, { turn_count }) => sum + turn_count, 0) ?? 0;
  return (
    <p role="status" className="min-h-5 tabular-nums">
      {error && <span className="text-destructive">{error.message}</span>}
      {data && count === 0 && 'No session matches. Change the filter.'}
      {data &&
        count > 0 &&
        `${data.next === undefined ? '' : 'More than '}${formatCount(count)} ${count === 1 ? 'session' : 'sessions'} with ${formatCount(turns)} turns. A replay takes up to 2,000 sessions.`}
    </p>
  );
}

function SessionsPart({ draft, problems, onChange }: PartProps) {
  const agents = useAgents();
  return (
    <Part title="Sessions">
      <div className="flex flex-wrap gap-x-6 gap-y-2">
        {(
          [
            ['filter', 'Sessions that match a filter'],
            ['sessions', 'Chosen sessions'],
          ] as const
        ).map(([source, label]) => (
          <label key={source} className="flex items-center gap-2 py-1">
            <input
              type="radio"
              name="source"
              className="size-4"
              checked={draft.source === source}
              onChange={() => onChange({ source })}
            />
            {label}
          </label>
        ))}
      </div>
      {draft.source === 'sessions' ? (
        <Field
          label="Ids of sessions"
          hint={`${formatCount(sessionIdsOf(draft).length)} chosen. One per line.`}
          error={problems['sessions']}
        >
          <Textarea
            value={draft.sessions}
            spellCheck={false}
            onChange={({ target }) => onChange({ sessions: target.value })}
          />
        </Field>
      ) : (
        <>
          <div className="grid gap-4 md:grid-cols-2 xl:grid-cols-5">
            <Field label="Agent">
              <Select
                value={draft.filterAgent}
                onChange={({ target }) => onChange({ filterAgent: target.value })}
              >
                <option value="">All agents</option>
                {agents.map(({ agent_id, name }) => (
                  <option key={agent_id} value={agent_id}>
                    {name}
                  </option>
                ))}
              </Select>
            </Field>
            <Field label="Words of a turn">
              <Input
                data-search
                value={draft.words}
                onChange={({ target }) => onChange({ words: target.value })}
              />
            </Field>
            <Field label="Label">
              <Input
                value={draft.label}
                placeholder="customer:4711"
                onChange={({ target }) => onChange({ label: target.value })}
              />
            </Field>
            <Field label="Began on or after">
              <Input
                type="date"
                value={draft.createdFrom}
                onChange={({ target }) => onChange({ createdFrom: target.value })}
              />
            </Field>
            <Field label="Began before">
              <Input
                type="date"
                value={draft.createdTo}
                onChange={({ target }) => onChange({ createdTo: target.value })}
              />
            </Field>
          </div>
          <MatchedSessions draft={draft} />
        </>
      )}
      <div className="grid grid-cols-2 gap-4 md:max-w-md">
        <Field label="First turn" error={problems['fromTurn']}>
          <Input
            inputMode="numeric"
            placeholder="1"
            value={draft.fromTurn}
            onChange={({ target }) => onChange({ fromTurn: target.value })}
          />
        </Field>
        <Field label="Last turn" error={problems['upToTurn']}>
          <Input
            inputMode="numeric"
            placeholder="the last"
            value={draft.upToTurn}
            onChange={({ target }) => onChange({ upToTurn: target.value })}
          />
        </Field>
      </div>
    </Part>
  );
}

type Model = Schema<'Model'>;

const priceOf = (model: Model | undefined): string | undefined =>
  model?.price &&
  `Prompt ${model.price.input_per_million}, answer ${model.price.output_per_million} ${model.price.currency} per million tokens.`;

function ReplacementsPart({
  draft,
  problems,
  onChange,
  models,
}: PartProps & { models: readonly Model[] }) {
  const agents = useAgents();
  return (
    <Part title="What changes" hint="Everything that you leave as it is runs as it was recorded.">
      <div className="grid gap-4 md:grid-cols-3">
        <Field label="Run by agent">
          <Select value={draft.agent} onChange={({ target }) => onChange({ agent: target.value })}>
            <option value="">The agent of each session</option>
            {agents.map(({ agent_id, name }) => (
              <option key={agent_id} value={agent_id}>
                {name}
              </option>
            ))}
          </Select>
        </Field>
        <Field
          label="Revision of the agent"
          hint={
            draft.agent === ''
              ? 'As recorded unless you enter one.'
              : 'The newest unless you enter one.'
          }
          error={problems['revision']}
        >
          <Input
            inputMode="numeric"
            value={draft.revision}
            onChange={({ target }) => onChange({ revision: target.value })}
          />
        </Field>
        <Field label="Model" hint={priceOf(models.find(({ id }) => id === draft.model))}>
          <Select value={draft.model} onChange={({ target }) => onChange({ model: target.value })}>
            <ModelOptions models={models} none="As recorded" />
          </Select>
        </Field>
      </div>
      <Field label="Instruction" hint="In place of the agent’s. Empty: as recorded.">
        <Textarea
          value={draft.instruction}
          onChange={({ target }) => onChange({ instruction: target.value })}
        />
      </Field>
    </Part>
  );
}

function RunPart({ draft, problems, onChange }: PartProps) {
  return (
    <Part title="Tools and limits">
      <div className="grid gap-4 md:grid-cols-2 xl:grid-cols-4">
        <Field label="Tool results">
          <Select
            value={draft.tools}
            onChange={({ target }) => onChange({ tools: target.value as ReplayDraft['tools'] })}
          >
            <option value="recorded">As recorded: no tool is called</option>
            <option value="live">From the tools, which are called</option>
          </Select>
        </Field>
        <Field label="Calls that are not recorded">
          <Select
            value={draft.missingTools}
            disabled={draft.tools === 'live'}
            onChange={({ target }) =>
              onChange({ missingTools: target.value as ReplayDraft['missingTools'] })
            }
          >
            <option value="stop">End the replay of the session</option>
            <option value="live">Call the tool</option>
            <option value="error-result">Tell the model of an error</option>
          </Select>
        </Field>
        <Field
          label="Token budget"
          hint="Nothing more begins when it is used up."
          error={problems['budget']}
        >
          <Input
            inputMode="numeric"
            value={draft.budget}
            onChange={({ target }) => onChange({ budget: target.value })}
          />
        </Field>
        <Field label="Sessions at a time" hint="1 to 4." error={problems['concurrency']}>
          <Input
            inputMode="numeric"
            value={draft.concurrency}
            onChange={({ target }) => onChange({ concurrency: target.value })}
          />
        </Field>
      </div>
    </Part>
  );
}

const curlOf = (draft: ReplayDraft): string =>
  toCurl({
    method: 'POST',
    url: `${location.origin}/v1/replays`,
    body: JSON.stringify(toBody(draft)),
    headers: { 'content-type': 'application/json' },
  });

/** Starts a replay: which sessions, and what is different this time. */
export function NewReplayView() {
  const search = route.useSearch();
  const navigate = useNavigate();
  const client = useQueryClient();
  const [draft, setDraft] = useState(() => emptyDraft(search));
  const [isTried, setTried] = useState(false);
  const [key, setKey] = useState(newIdempotencyKey);
  const models = useQuery(modelsQuery).data ?? [];
  const found = findProblems(draft);
  const isValid = Object.keys(found).length === 0;
  const { mutate, isPending, error } = useMutation({
    mutationFn: () =>
      dataOf(
        api.POST('/v1/replays', {
          params: { header: { 'Idempotency-Key': key } },
          body: toBody(draft),
        }),
      ),
    onSuccess: async ({ replay_id: replayId }) => {
      void client.invalidateQueries({ queryKey: ['replays', 'list'] });
      await navigate({ to: '/replays/$replayId', params: { replayId } });
    },
  });
  const part: PartProps = {
    draft,
    problems: isTried ? found : {},
    onChange: (changes) => {
      setDraft({ ...draft, ...changes });
      // Another request is not a repetition of the one before.
      setKey(newIdempotencyKey());
    },
  };
  const start = (event: FormEvent): void => {
    event.preventDefault();
    setTried(true);
    if (isValid) mutate();
  };
  return (
    <View
      title="New replay"
      description="Runs recorded sessions again in new sessions, and compares the answers."
    >
      <form
        onSubmit={start}
        noValidate
        className="mx-auto grid max-w-5xl grid-cols-[minmax(0,1fr)] gap-4"
      >
        <SessionsPart {...part} />
        <ReplacementsPart {...part} models={models} />
        <RunPart {...part} />
        <ChecksPart {...part} models={models} />
        {error && <ErrorState error={error} />}
        {isTried && !isValid && (
          <p role="alert" className="text-destructive">
            Correct the marked fields.
          </p>
        )}
        <div className="flex flex-wrap items-center justify-end gap-2">
          {isValid && <CopyButton text={curlOf(draft)} label="Copy as curl" />}
          <Button type="submit" disabled={isPending}>
            {isPending ? 'Starting…' : 'Start replay'}
          </Button>
        </div>
      </form>
    </View>
  );
}
