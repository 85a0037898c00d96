import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { History, MessageSquare, Pencil, Trash2 } from 'lucide-react';
import { useState, type ReactNode } from 'react';
import { api, type Schema } from '../api/client.ts';
import { Button } from '../components/Button.tsx';
import { CopyButton } from '../components/CopyButton.tsx';
import { Dialog } from '../components/Dialog.tsx';
import { Skeleton, View } from '../components/layout.tsx';
import { Alert, ErrorState } from '../components/states.tsx';
import { Time } from '../components/Time.tsx';
import { toolsOf } from './agentDraft.ts';
import { agentQuery } from './agentQueries.ts';

const route = getRouteApi('/agents/$agentId');

const FORMATS: Readonly<Record<string, string>> = {
  text: 'Text',
  json_object: 'A JSON object',
  json_schema: 'JSON that matches a schema',
};

const Entry = ({ label, children }: { label: string; children: ReactNode }) => (
  <>
    <dt className="text-muted-foreground">{label}</dt>
    <dd className="mb-2 min-w-0 wrap-anywhere sm:mb-0">{children}</dd>
  </>
);

const TextBlock = ({ label, text }: { label: string; text: string }) => (
  <section className="grid gap-1.5">
    <div className="flex items-center justify-between gap-2">
      <h2 className="font-medium">{label}</h2>
      <CopyButton text={text} label="Copy" />
    </div>
    <div
      role="group"
      tabIndex={0}
      aria-label={label}
      className="max-h-96 overflow-y-auto rounded-md border bg-card p-3 whitespace-pre-wrap wrap-anywhere"
    >
      {text}
    </div>
  </section>
);

function AgentDetails({ agent }: { agent: Schema<'AgentDetail'> }) {
  const { agent_id, config, component, created_at, updated_at, revision } = agent;
  const { response_format: format } = config;
  const schema = format?.type === 'json_schema' ? format.json_schema : undefined;
  return (
    <div className="mx-auto grid max-w-3xl gap-6">
      <dl className="grid gap-x-6 gap-y-1.5 sm:grid-cols-[10rem_minmax(0,1fr)]">
        <Entry label="Id">
          <code className="text-xs">{agent_id}</code>
        </Entry>
        <Entry label="Model">{config.model}</Entry>
        <Entry label="Tools">{toolsOf(config).join(', ') || 'None'}</Entry>
        <Entry label="Temperature">{config.temperature ?? 'As the provider has it'}</Entry>
        <Entry label="Most output tokens">
          {config.max_output_tokens?.toLocaleString() ?? 'As the model has it'}
        </Entry>
        <Entry label="Response format">
          {format ? FORMATS[format.type] : 'Any text'}
          {schema && ` (${schema.name}${schema.strict ? ', strict' : ''})`}
        </Entry>
        <Entry label="Component">{component}</Entry>
        <Entry label="Older turns">
          {config.compaction ? 'Are summarised' : 'Fall out of the context'}
        </Entry>
        <Entry label="Revision">
          <span className="tabular-nums">{revision}</span>
        </Entry>
        <Entry label="Created">
          <Time value={created_at} />
        </Entry>
        <Entry label="Changed">
          <Time value={updated_at} />
        </Entry>
      </dl>
      <TextBlock label="Instruction" text={config.instruction} />
      {schema && (
        <TextBlock label="JSON Schema" text={JSON.stringify(schema.schema, undefined, 2)} />
      )}
    </div>
  );
}

interface DeleteDialogProps {
  agent: Schema<'AgentDetail'>;
  etag: string;
  isOpen: boolean;
  onClose: () => void;
}

function DeleteDialog({ agent, etag, isOpen, onClose }: DeleteDialogProps) {
  const navigate = useNavigate();
  const queryClient = useQueryClient();
  const deletion = useMutation({
    mutationFn: () =>
      api.DELETE('/v1/agents/{agentId}', {
        params: { path: { agentId: agent.agent_id } },
        headers: { 'if-match': etag },
      }),
    onSuccess: async () => {
      await navigate({ to: '/agents' });
      queryClient.removeQueries({ queryKey: ['agents', 'one', agent.agent_id] });
      await queryClient.invalidateQueries({ queryKey: ['agents'] });
    },
    onError: () => queryClient.invalidateQueries({ queryKey: ['agents', 'one', agent.agent_id] }),
  });
  return (
    <Dialog title="Delete this agent?" isOpen={isOpen} onClose={onClose}>
      <div className="grid gap-4">
        <p className="wrap-anywhere">
          <strong>{agent.name}</strong> can no longer be run, and this can’t be undone. Its
          revisions and sessions stay readable, and no text is erased.
        </p>
        {deletion.error && <Alert title={deletion.error.message} />}
        <div className="flex flex-wrap justify-end gap-2">
          <Button variant="ghost" data-autofocus onClick={onClose}>
            Cancel
          </Button>
          <Button
            variant="destructive"
            disabled={deletion.isPending}
            onClick={() => deletion.mutate()}
          >
            {deletion.isPending ? 'Deleting…' : 'Delete agent'}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}

/** One agent: its configuration, and what can be done with it. */
export function AgentView() {
  const { agentId } = route.useParams();
  const { data, error, refetch } = useQuery(agentQuery(agentId));
  const [isDeleting, setDeleting] = useState(false);
  const params = { agentId };
  return (
    <View
      title={data?.agent.name ?? 'Agent'}
      actions={
        data && (
          <>
            <Button asChild>
              <Link to="/chat/$agentId" params={params}>
                <MessageSquare aria-hidden /> Chat
              </Link>
            </Button>
            <Button asChild variant="outline">
              <Link to="/agents/$agentId/edit" params={params}>
                <Pencil aria-hidden /> Edit
              </Link>
            </Button>
            <Button asChild variant="outline">
              <Link to="/agents/$agentId/revisions" params={params}>
                <History aria-hidden /> Revisions
              </Link>
            </Button>
            <Button variant="destructive" onClick={() => setDeleting(true)}>
              <Trash2 aria-hidden /> Delete
            </Button>
          </>
        )
      }
    >
      {error && <ErrorState error={error} onRetry={() => void refetch()} />}
      {!data && !error && (
        <div className="mx-auto grid max-w-3xl gap-4" role="status" aria-label="Loading">
          <Skeleton className="h-56" />
          <Skeleton className="h-32" />
        </div>
      )}
      {data && (
        <>
          <AgentDetails agent={data.agent} />
          <DeleteDialog
            agent={data.agent}
            etag={data.etag}
            isOpen={isDeleting}
            onClose={() => setDeleting(false)}
          />
        </>
      )}
    </View>
  );
}
