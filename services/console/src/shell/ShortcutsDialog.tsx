import { Dialog } from '../components/Dialog.tsx';
import { VIEWS } from './navigation.ts';

const KEYS: readonly (readonly [string, string])[] = [
  ['⌘K or Ctrl K', 'Go to a view, an agent or a session'],
  ['/', 'Search in this view'],
  ...VIEWS.map(({ key, label }) => [`g ${key}`, label] as const),
  ['j and k', 'Next and previous entry of a list'],
  ['Enter', 'Open the entry, or send the message'],
  ['Escape', 'Close a dialog, or stop an answer'],
  ['?', 'This list'],
];

export const ShortcutsDialog = (props: { isOpen: boolean; onClose: () => void }) => (
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
