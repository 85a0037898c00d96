import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { ApiError } from '../api/apiError.ts';
import { api, type Schema } from '../api/client.ts';
import { newIdempotencyKey } from '../api/idempotencyKey.ts';
import { Button } from '../components/Button.tsx';
import { Skeleton, View } from '../components/layout.tsx';
import { Alert, ErrorState } from '../components/states.tsx';
import { Time } from '../components/Time.tsx';
import { draftOf, EMPTY_DRAFT, exampleDraft, type AgentBody } from './agentDraft.ts';
import { AgentForm } from './AgentForm.tsx';
import { agentQuery, modelsQuery, toolsQuery } from './agentQueries.ts';
import { ConfigDiff } from './ConfigDiff.tsx';

const newRoute = getRouteApi('/agents/new');
const editRoute = getRouteApi('/agents/$agentId/edit');

const FormSkeleton = () => (
  <div className="mx-auto grid max-w-3xl gap-5" role="status" aria-label="Loading">
    <Skeleton className="h-9" />
    <Skeleton className="h-40" />
    <Skeleton className="h-9" />
  </div>
);

/** Creates an agent, with `?example=true` from a ready example. */
export function NewAgentView() {
  const { example } = newRoute.useSearch();
  const navigate = useNavigate();
  const queryClient = useQueryClient();
  const models = useQuery(modelsQuery);
  const tools = useQuery(toolsQuery);
  // A second attempt after a lost answer must not create a second agent.
  const [attempt, setAttempt] = useState({ key: '', text: '' });
  const create = async (body: AgentBody): Promise<void> => {
    const text = JSON.stringify(body);
    const key = attempt.text === text ? attempt.key : newIdempotencyKey();
    setAttempt({ key, text });
    const { data } = await api.POST('/v1/agents', {
      body,
      headers: { 'idempotency-key': key },
    });
    await queryClient.invalidateQueries({ queryKey: ['agents'] });
    await navigate({ to: '/agents/$agentId', params: { agentId: data!.data.agent_id } });
  };
  const ids = models.data?.map(({ id }) => id) ?? [];
  const names = tools.data?.map((tool) => tool.name) ?? [];
  const error = models.error ?? tools.error;
  return (
    <View title="New agent" description={example && 'An example. Change what you like.'}>
      {error && <ErrorState error={error} onRetry={() => void models.refetch()} />}
      {(models.isPending || tools.isPending) && <FormSkeleton />}
      {models.data && tools.data && (
        <AgentForm
          key={String(example)}
          initial={example ? exampleDraft(ids, names) : { ...EMPTY_DRAFT, model: ids[0] ?? '' }}
          action="Create agent"
          onSave={create}
        >
          <Button asChild variant="ghost">
            <Link to="/agents">Cancel</Link>
          </Button>
        </AgentForm>
      )}
    </View>
  );
}

interface Stored {
  agent: Schema<'AgentDetail'>;
  etag: string;
}

interface ConflictProps {
  mine: Stored;
  theirs: Stored;
  onOverwrite: () => void;
  onDiscard: () => void;
}

/** Says what somebody else changed in the meantime, and offers both ways on. */
const Conflict = ({ mine, theirs, onOverwrite, onDiscard }: ConflictProps) => (
  <Alert title="This agent was changed while you edited it">
    <p>
      You started from revision {mine.agent.revision}. Revision {theirs.agent.revision} was saved{' '}
      <Time value={theirs.agent.updated_at} />. Nothing of yours was saved yet. These fields have
      changed there:
    </p>
    <ConfigDiff
      before={mine.agent}
      after={theirs.agent}
      names={[`Revision ${mine.agent.revision}`, `Revision ${theirs.agent.revision}`]}
    />
    <div className="flex flex-wrap gap-2">
      <Button variant="outline" size="small" onClick={onDiscard}>
        Discard mine and edit revision {theirs.agent.revision}
      </Button>
      <Button variant="destructive" size="small" onClick={onOverwrite}>
        Keep mine and replace it when I save
      </Button>
    </div>
  </Alert>
);

function EditForm({ agentId, loaded }: { agentId: string; loaded: Stored }) {
  const navigate = useNavigate();
  const queryClient = useQueryClient();
  /** What the form started from; it stays, whatever is loaded later. */
  const [base, setBase] = useState(loaded);
  const [etag, setEtag] = useState(loaded.etag);
  const [theirs, setTheirs] = useState<Stored>();
  const save = async (body: AgentBody): Promise<void> => {
    try {
      await api.PUT('/v1/agents/{agentId}', {
        params: { path: { agentId } },
        body,
        headers: { 'if-match': etag },
      });
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'precondition_failed') throw error;
      return setTheirs(await queryClient.fetchQuery({ ...agentQuery(agentId), staleTime: 0 }));
    }
    await queryClient.invalidateQueries({ queryKey: ['agents'] });
    return navigate({ to: '/agents/$agentId', params: { agentId } });
  };
  return (
    <AgentForm
      key={base.etag}
      initial={draftOf(base.agent)}
      action="Save changes"
      onSave={save}
      notice={
        theirs && (
          <Conflict
            mine={base}
            theirs={theirs}
            onOverwrite={() => {
              setEtag(theirs.etag);
              setTheirs(undefined);
            }}
            onDiscard={() => {
              setBase(theirs);
              setEtag(theirs.etag);
              setTheirs(undefined);
            }}
          />
        )
      }
    >
      <Button asChild variant="ghost">
        <Link to="/agents/$agentId" params={{ agentId }}>
          Cancel
        </Link>
      </Button>
    </AgentForm>
  );
}

/** Edits an agent. A change by somebody else in the meantime is noticed and explained. */
export function EditAgentView() {
  const { agentId } = editRoute.useParams();
  const { data, error, refetch } = useQuery({
    ...agentQuery(agentId),
    refetchOnWindowFocus: false,
  });
  return (
    <View title={data ? `Edit ${data.agent.name}` : 'Edit agent'}>
      {error && <ErrorState error={error} onRetry={() => void refetch()} />}
      {!data && !error && <FormSkeleton />}
      {data && <EditForm key={agentId} agentId={agentId} loaded={data} />}
    </View>
  );
}
