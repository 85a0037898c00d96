import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { ApiError } from '../api/apiError.ts';
import { api, type Schema } from '../api/client.ts';
import { newIdempotencyKey } from '../api/idempotencyKey.ts';
import { Button } from '../components/Button.tsx';
import { Alert, Loaded, View } from '../components/view.tsx';
import { draftOf, EMPTY_DRAFT, EXAMPLE_DRAFT, type AgentFields } from './agentFields.ts';
import { AgentForm } from './AgentForm.tsx';
import { agentQuery, modelsQuery, type StoredAgent } from './agentQueries.ts';
import { ConfigDiff } from './RevisionsView.tsx';

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
  return (
    <View title="New agent" description={example && 'An example. Change what you like.'}>
      <Loaded query={models}>
        {([model]) => (
          <AgentForm
            key={String(example)}
            initial={{ ...(example ? EXAMPLE_DRAFT : EMPTY_DRAFT), model: model?.id ?? '' }}
            action="Create agent"
            onSave={create}
          />
        )}
      </Loaded>
    </View>
  );
}

const scrollTo = (element: HTMLElement | null): void =>
  element?.scrollIntoView({ block: 'nearest' });

function EditForm({ agentId, loaded }: { agentId: string; loaded: StoredAgent }) {
  const show = useSaved();
  const queryClient = useQueryClient();
  /** The version that the form started from; later loads do not change it. */
  const [mine, setMine] = useState(loaded);
  const [theirs, setTheirs] = useState<StoredAgent>();
  const names = [mine, theirs ?? mine].map(({ agent }) => `Revision ${agent.revision}`);
  const saveOver =
    (etag: string) =>
    async (fields: AgentFields): Promise<void> => {
      const request = { params: { path: { agentId } }, headers: { 'if-match': etag } };
      try {
        await api.PUT('/v1/agents/{agentId}', { ...request, body: fields as AgentBody });
      } catch (error) {
        if (!(error instanceof ApiError) || error.code !== 'precondition_failed') throw error;
        return setTheirs(await queryClient.fetchQuery({ ...agentQuery(agentId), staleTime: 0 }));
      }
      return show(agentId);
    };
  return (
    <AgentForm
      key={mine.etag}
      initial={draftOf(mine.agent)}
      action={theirs ? `Replace ${names[1]}` : 'Save changes'}
      onSave={saveOver((theirs ?? mine).etag)}
      notice={
        theirs && (
          <Alert title="This agent was changed while you edited it">
            <p>
              You started from {names[0]}. {names[1]} was saved in the meantime, and nothing of
              yours was saved yet. These fields have changed there:
            </p>
            <ConfigDiff before={mine.agent} after={theirs.agent} names={[names[0]!, names[1]!]} />
            <Button
              ref={scrollTo}
              size="small"
              className="justify-self-start"
              onClick={() => {
                setMine(theirs);
                setTheirs(undefined);
              }}
            >
              Discard mine and edit {names[1]}
            </Button>
          </Alert>
        )
      }
    />
  );
}

/** Edits an agent. A concurrent change by another client is noticed and explained. */
export function EditAgentView() {
  const { agentId } = editRoute.useParams();
  const query = useQuery(agentQuery(agentId));
  return (
    <View title={query.data ? `Edit ${query.data.agent.name}` : 'Edit agent'}>
      <Loaded query={query}>
        {(loaded) => <EditForm key={agentId} agentId={agentId} loaded={loaded} />}
      </Loaded>
    </View>
  );
}
