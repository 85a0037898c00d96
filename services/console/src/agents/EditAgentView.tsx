import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { ApiError } from '../api/apiError.ts';
import { api, type Schema } from '../api/client.ts';
import { newIdempotencyKey } from '../api/idempotencyKey.ts';
import { Button } from '../components/Button.tsx';
import { Skeleton, View } from '../components/layout.tsx';
import { Alert, ErrorState } from '../components/states.tsx';
import { Time } from '../components/Time.tsx';
import { draftOf, EMPTY_DRAFT, exampleDraft, type AgentFields } from './agentDraft.ts';
import { AgentForm } from './AgentForm.tsx';
import { agentQuery, modelsQuery, toolsQuery, type StoredAgent } from './agentQueries.ts';
import { ConfigDiff } from './ConfigDiff.tsx';

type AgentBody = Schema<'CreateAgentRequest'>;

const newRoute = getRouteApi('/agents/new');
const editRoute = getRouteApi('/agents/$agentId/edit');

/** Shows an agent that was saved, and everything that lists it anew. */
function useSaved() {
  const navigate = useNavigate();
  const queryClient = useQueryClient();
  return async (agentId: string): Promise<void> => {
    await queryClient.invalidateQueries({ queryKey: ['agents'] });
    await navigate({ to: '/agents/$agentId', params: { agentId } });
  };
}

/** Creates an agent, with `?example=true` from a ready example. */
export function NewAgentView() {
  const { example } = newRoute.useSearch();
  const show = useSaved();
  const models = useQuery(modelsQuery);
  const tools = useQuery(toolsQuery);
  // A second attempt after a lost answer must not create a second agent.
  const [attempt, setAttempt] = useState({ key: '', text: '' });
  const create = async (fields: AgentFields): Promise<void> => {
    const text = JSON.stringify(fields);
    const key = attempt.text === text ? attempt.key : newIdempotencyKey();
    setAttempt({ key, text });
    const headers = { 'idempotency-key': key };
    const { data } = await api.POST('/v1/agents', { body: fields as AgentBody, headers });
    await show(data!.data.agent_id);
  };
  const error = models.error ?? tools.error;
  const ids = models.data?.map(({ id }) => id) ?? [];
  const names = tools.data?.map(({ name }) => name) ?? [];
  const initial = example ? exampleDraft(ids, names) : { ...EMPTY_DRAFT, model: ids[0] ?? '' };
  return (
    <View title="New agent" description={example && 'An example. Change what you like.'}>
      {error && <ErrorState error={error} onRetry={() => void models.refetch()} />}
      {models.data && tools.data && (
        <AgentForm key={String(example)} initial={initial} action="Create agent" onSave={create} />
      )}
    </View>
  );
}

interface ConflictProps {
  mine: StoredAgent;
  theirs: StoredAgent;
  onOverwrite: () => void;
  onDiscard: () => void;
}

/** Says what somebody else changed in the meantime, and offers both ways on. */
function Conflict({ mine, theirs, onOverwrite, onDiscard }: ConflictProps) {
  const [before, after] = [mine.agent.revision, theirs.agent.revision];
  return (
    <Alert title="This agent was changed while you edited it">
      <p>
        You started from revision {before}. Revision {after} was saved{' '}
        <Time value={theirs.agent.updated_at} />. Nothing of yours was saved yet. These fields have
        changed there:
      </p>
      <ConfigDiff
        before={mine.agent}
        after={theirs.agent}
        names={[`Revision ${before}`, `Revision ${after}`]}
      />
      <div className="flex flex-wrap gap-2">
        <Button variant="outline" size="small" onClick={onDiscard}>
          Discard mine and edit revision {after}
        </Button>
        <Button variant="destructive" size="small" onClick={onOverwrite}>
          Keep mine and replace it when I save
        </Button>
      </div>
    </Alert>
  );
}

function EditForm({ agentId, loaded }: { agentId: string; loaded: StoredAgent }) {
  const show = useSaved();
  const queryClient = useQueryClient();
  /** What the form started from; it stays, whatever is loaded later. */
  const [base, setBase] = useState(loaded);
  const [etag, setEtag] = useState(loaded.etag);
  const [theirs, setTheirs] = useState<StoredAgent>();
  const save = async (fields: AgentFields): Promise<void> => {
    try {
      const params = { path: { agentId } };
      const headers = { 'if-match': etag };
      await api.PUT('/v1/agents/{agentId}', { params, headers, body: fields as AgentBody });
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'precondition_failed') throw error;
      return setTheirs(await queryClient.fetchQuery({ ...agentQuery(agentId), staleTime: 0 }));
    }
    return show(agentId);
  };
  const resolve = (conflict: StoredAgent): void => {
    setEtag(conflict.etag);
    setTheirs(undefined);
  };
  const notice = theirs && (
    <Conflict
      mine={base}
      theirs={theirs}
      onOverwrite={() => resolve(theirs)}
      onDiscard={() => {
        setBase(theirs);
        resolve(theirs);
      }}
    />
  );
  const initial = draftOf(base.agent);
  return (
    <AgentForm
      key={base.etag}
      initial={initial}
      action="Save changes"
      onSave={save}
      notice={notice}
    />
  );
}

/** Edits an agent. A change by somebody else in the meantime is noticed and explained. */
export function EditAgentView() {
  const { agentId } = editRoute.useParams();
  const { data, error, refetch } = useQuery(agentQuery(agentId));
  return (
    <View title={data ? `Edit ${data.agent.name}` : 'Edit agent'}>
      {error && <ErrorState error={error} onRetry={() => void refetch()} />}
      {data && <EditForm key={agentId} agentId={agentId} loaded={data} />}
      {!data && !error && <Skeleton className="mx-auto h-96 max-w-3xl" />}
    </View>
  );
}
