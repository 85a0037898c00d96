import { useSyncExternalStore } from 'react';
import { getRequestLog, onRequestLogChange, toCurl } from '../api/requestLog.ts';
import { CopyButton } from '../components/CopyButton.tsx';
import { Dialog } from '../components/Dialog.tsx';
import { Time } from '../components/Time.tsx';
import { VIEWS } from './navigation.ts';

interface DialogProps {
  isOpen: boolean;
  onClose: () => void;
}

/** The latest requests of this tab; each can be copied as a curl command. */
export function RequestsDialog(props: DialogProps) {
  const requests = useSyncExternalStore(onRequestLogChange, getRequestLog);
  return (
    <Dialog title="Requests as curl" className="w-[min(52rem,calc(100vw-2rem))]" {...props}>
      <p className="mb-3 text-muted-foreground">
        The latest requests of this tab. The commands take the key from <code>TURNLOG_API_KEY</code>
        .
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
  ['⌘K or Ctrl K', 'Go to a view, an agent or a session'],
  ['/', 'Search in this view'],
  ...VIEWS.map(({ key, label }) => [`g ${key}`, label] as const),
  ['j and k', 'Next and previous entry of a list'],
  ['Enter', 'Open the entry, or send the message'],
  ['Escape', 'Close a dialog, or stop an answer'],
  ['?', 'This list'],
];

export const ShortcutsDialog = (props: DialogProps) => (
  <Dialog title="Keyboard shortcuts" {...props}>
    <dl className="grid grid-cols-[auto_1fr] gap-x-6 gap-y-2">
      {KEYS.map(([keys, meaning]) => (
        <div key={keys} className="contents">
          <dt>
            <kbd className="rounded border bg-muted px-1.5 py-0.5 text-xs">{keys}</kbd>
          </dt>
          <dd>{meaning}</dd>
        </div>
      ))}
    </dl>
  </Dialog>
);
