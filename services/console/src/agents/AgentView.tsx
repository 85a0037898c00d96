import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { History, MessageSquare, Pencil, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { api, type Schema } from '../api/client.ts';
import { Button, LinkButton } from '../components/Button.tsx';
import { Dialog } from '../components/Dialog.tsx';
import { Alert, Card, Facts, Loaded, Time, View } from '../components/view.tsx';
import { Plain } from '../sessions/session/texts.tsx';
import { FIELD_LABELS, toolsOf } from './agentFields.ts';
import { agentQuery, type StoredAgent } from './agentQueries.ts';

const route = getRouteApi('/agents/$agentId');

function AgentDetails({ agent }: { agent: Schema<'AgentDetail'> }) {
  const { config, component, revision, created_at, updated_at } = agent;
  const format = config.response_format;
  return (
    <div className="mx-auto grid max-w-4xl gap-6">
      <Facts
        facts={[
          [FIELD_LABELS.model, config.model],
          [FIELD_LABELS.tool, toolsOf(config).join(', ') || 'None'],
          [FIELD_LABELS.temperature, config.temperature ?? 'As the provider has it'],
          [FIELD_LABELS.max_output_tokens, config.max_output_tokens ?? 'As the model has it'],
          [FIELD_LABELS.response_format, format?.type ?? 'Any text'],
          [FIELD_LABELS.component, component],
          ['Older turns', config.compaction ? 'Are summarised' : 'Fall out of the context'],
          ['Revision', revision],
          ['Created', <Time value={created_at} />],
          ['Changed', <Time value={updated_at} />],
          ['Id', <code className="text-xs break-all">{agent.agent_id}</code>],
        ]}
      />
      <Card title={FIELD_LABELS.instruction}>
        <Plain text={config.instruction} />
      </Card>
      {format?.type === 'json_schema' && (
        <Card title="JSON Schema">
          <Plain text={JSON.stringify(format.json_schema, undefined, 2)} />
        </Card>
      )}
    </div>
  );
}

function DeleteDialog({ stored, onClose }: { stored: StoredAgent; onClose: () => void }) {
  const { agent_id: agentId, name } = stored.agent;
  const navigate = useNavigate();
  const queryClient = useQueryClient();
  const request = { params: { path: { agentId } }, headers: { 'if-match': stored.etag } };
  const { mutate, isPending, error } = useMutation({
    mutationFn: () => api.DELETE('/v1/agents/{agentId}', request),
    onSuccess: () => navigate({ to: '/agents' }),
    onSettled: () => queryClient.invalidateQueries({ queryKey: ['agents'] }),
  });
  return (
    <Dialog title="Delete this agent?" onClose={onClose}>
      <div className="grid gap-4">
        <p className="wrap-anywhere">
          <strong>{name}</strong> can no longer be run, and this can’t be undone. Its revisions and
          sessions stay readable, and no text is erased.
        </p>
        {error && <Alert title={error.message} />}
        <div className="flex justify-end gap-2">
          <Button variant="ghost" data-autofocus onClick={onClose}>
            Cancel
          </Button>
          <Button variant="destructive" disabled={isPending} onClick={() => mutate()}>
            Delete agent
          </Button>
        </div>
      </div>
    </Dialog>
  );
}

const LINKS = [
  { to: '/chat/$agentId', label: 'Chat', icon: MessageSquare, variant: 'primary' },
  { to: '/agents/$agentId/edit', label: 'Edit', icon: Pencil, variant: 'outline' },
  { to: '/agents/$agentId/revisions', label: 'Revisions', icon: History, variant: 'outline' },
] as const;

/** One agent: its configuration, and what can be done with it. */
export function AgentView() {
  const { agentId } = route.useParams();
  const query = useQuery(agentQuery(agentId));
  const [isDeleting, setDeleting] = useState(false);
  const actions = (
    <>
      {LINKS.map(({ to, label, icon: Icon, variant }) => (
        <LinkButton key={to} variant={variant} to={to} params={{ agentId }}>
          <Icon aria-hidden /> {label}
        </LinkButton>
      ))}
      <Button variant="destructive" onClick={() => setDeleting(true)}>
        <Trash2 aria-hidden /> Delete
      </Button>
    </>
  );
  return (
    <View title={query.data?.agent.name ?? 'Agent'} actions={query.data && actions}>
      <Loaded query={query}>
        {(stored) => (
          <>
            <AgentDetails agent={stored.agent} />
            {isDeleting && <DeleteDialog stored={stored} onClose={() => setDeleting(false)} />}
          </>
        )}
      </Loaded>
    </View>
  );
}
