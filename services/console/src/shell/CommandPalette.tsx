import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { Command } from 'cmdk';
import { api, dataOf } from '../api/client.ts';
import { Dialog } from '../components/Dialog.tsx';
import { VIEWS } from './navigation.ts';

const ITEM =
  'flex cursor-pointer items-center gap-2 rounded-md px-3 py-2 data-[selected=true]:bg-accent data-[selected=true]:text-accent-foreground [&_svg]:size-4';
const MOST_AGENTS = 200;

function PaletteItems({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate();
  const agents = useQuery({
    queryKey: ['agents', 'palette'],
    queryFn: () => dataOf(api.GET('/v1/agents', { params: { query: { limit: MOST_AGENTS } } })),
  });
  const go = (to: () => Promise<void>) => () => {
    onClose();
    void to();
  };
  return (
    <Command label="Go to" className="grid gap-3">
      <Command.Input
        data-autofocus
        placeholder="A view or an agent"
        className="h-10 w-full rounded-md border border-input bg-background px-3"
      />
      <Command.List className="max-h-80 overflow-y-auto">
        <Command.Empty className="px-3 py-6 text-center text-muted-foreground">
          Nothing has that name.
        </Command.Empty>
        {VIEWS.map(({ to, label, icon: Icon }) => (
          <Command.Item key={to} className={ITEM} onSelect={go(() => navigate({ to }))}>
            <Icon aria-hidden /> {label}
          </Command.Item>
        ))}
        {agents.data?.map(({ agent_id, name }) => (
          <Command.Item
            key={agent_id}
            value={`${name} ${agent_id}`}
            className={ITEM}
            onSelect={go(() => navigate({ to: '/chat/$agentId', params: { agentId: agent_id } }))}
          >
            Chat with {name}
          </Command.Item>
        ))}
      </Command.List>
    </Command>
  );
}

/** Goes to a view or an agent by its name. */
export const CommandPalette = (props: { isOpen: boolean; onClose: () => void }) => (
  <Dialog title="Go to" {...props}>
    <PaletteItems onClose={props.onClose} />
  </Dialog>
);
