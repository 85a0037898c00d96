import { useNavigate } from '@tanstack/react-router';
import { Command } from 'cmdk';
import { useSyncExternalStore } from 'react';
import { useAgentNames } from '../agents/agentQueries.ts';
import { getRequestLog, onRequestLogChange, toCurl } from '../api/requestLog.ts';
import { CopyButton } from '../components/Button.tsx';
import { Dialog } from '../components/Dialog.tsx';
import { Facts, Time } from '../components/view.tsx';
import { VIEWS } from './navigation.ts';

interface DialogProps {
  onClose: () => void;
}

/** The latest requests of this tab; each can be copied as a curl command. */
export function RequestLogDialog(props: DialogProps) {
  const requests = useSyncExternalStore(onRequestLogChange, getRequestLog);
  return (
    <Dialog title="Requests as curl" className="w-[min(52rem,calc(100vw-2rem))]" {...props}>
      <p className="mb-3 text-muted-foreground">
        The latest requests of this tab. Commands take the key from <code>TURNLOG_API_KEY</code>.
      </p>
      <ul className="divide-y">
        {requests.map((request) => (
          <li key={request.id} className="flex items-center gap-3 py-1.5">
            <code className="min-w-0 flex-1 truncate text-xs">
              {request.method} {new URL(request.url).pathname}
              {new URL(request.url).search}
            </code>
            <span className="text-xs tabular-nums text-muted-foreground">
              {request.status ?? '…'} {request.ms !== undefined && `${Math.round(request.ms)} ms`}
            </span>
            <Time
              value={request.at.toISOString()}
              className="hidden text-xs text-muted-foreground sm:inline"
            />
            <CopyButton text={toCurl(request)} label="Copy" />
          </li>
        ))}
      </ul>
    </Dialog>
  );
}

const KEYS: readonly (readonly [string, string])[] = [
  ['⌘K or Ctrl K', 'Go to a view or an agent'],
  ['/', 'Search in this view'],
  ...VIEWS.map(({ key, label }) => [`g ${key}`, label] as const),
  ['j and k', 'Next and previous entry of a list'],
  ['Enter', 'Open the entry, or send the message'],
  ['Escape', 'Close a dialog, or stop an answer'],
  ['?', 'This list'],
];

export const ShortcutsDialog = (props: DialogProps) => (
  <Dialog title="Keyboard shortcuts" {...props}>
    <Facts
      className="md:grid-cols-2"
      facts={KEYS.map(([keys, meaning]) => [meaning, <kbd>{keys}</kbd>])}
    />
  </Dialog>
);

const ITEM =
  'flex cursor-pointer items-center gap-2 rounded-md px-3 py-2 data-[selected=true]:bg-accent data-[selected=true]:text-accent-foreground [&_svg]:size-4';

/** Goes to a view or an agent by its name. */
export function CommandPalette({ onClose }: DialogProps) {
  const navigate = useNavigate();
  const agents = useAgentNames();
  const go = (to: () => Promise<void>) => () => {
    onClose();
    void to();
  };
  return (
    <Dialog title="Go to" onClose={onClose}>
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
          {[...agents].map(([agentId, name]) => (
            <Command.Item
              key={agentId}
              value={`${name} ${agentId}`}
              className={ITEM}
              onSelect={go(() => navigate({ to: '/chat/$agentId', params: { agentId } }))}
            >
              Chat with {name}
            </Command.Item>
          ))}
        </Command.List>
      </Command>
    </Dialog>
  );
}
