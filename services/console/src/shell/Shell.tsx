import { Link, Outlet } from '@tanstack/react-router';
import { Command, LogOut, Menu, SquareTerminal } from 'lucide-react';
import { useState } from 'react';
import { setApiKey } from '../api/apiKey.ts';
import { Button } from '../components/Button.tsx';
import { cn } from '../components/classNames.ts';
import { CommandPalette, RequestLogDialog, ShortcutsDialog } from './dialogs.tsx';
import { VIEWS } from './navigation.ts';
import { ThemeSelect } from './ThemeSelect.tsx';
import { useShortcuts } from './useShortcuts.ts';

const ITEM =
  'flex items-center gap-2.5 rounded-md px-3 py-2 text-sm hover:bg-muted [&_svg]:size-4 w-full text-left';

/** The menu and the view beside it; on a phone the menu is above the view and opens on demand. */
export function Shell() {
  const [dialog, setDialog] = useState<'palette' | 'requests' | 'shortcuts'>();
  const [isMenuOpen, setMenuOpen] = useState(false);
  const closeDialog = (): void => setDialog(undefined);
  useShortcuts({ onPalette: () => setDialog('palette'), onHelp: () => setDialog('shortcuts') });
  return (
    <div className="flex h-full flex-col md:flex-row">
      <a
        href="#content"
        className="sr-only focus:not-sr-only focus:absolute focus:z-50 focus:m-2 focus:rounded-md focus:bg-card focus:p-2"
      >
        Skip to content
      </a>
      <header className="flex shrink-0 flex-col border-b bg-card md:w-52 md:border-r md:border-b-0">
        <div className="flex items-center justify-between px-4 py-3">
          <Link to="/agents" className="text-base font-semibold">
            Turnlog
          </Link>
          <Button
            variant="ghost"
            size="icon"
            className="md:hidden"
            aria-label="Menu"
            aria-expanded={isMenuOpen}
            onClick={() => setMenuOpen(!isMenuOpen)}
          >
            <Menu />
          </Button>
        </div>
        <div
          className={cn('flex-1 flex-col gap-4 px-2 pb-3 md:flex', isMenuOpen ? 'flex' : 'hidden')}
        >
          <nav aria-label="Views">
            {VIEWS.map(({ to, label, icon: Icon }) => (
              <Link
                key={to}
                to={to}
                onClick={() => setMenuOpen(false)}
                className={ITEM}
                activeProps={{
                  className: 'bg-accent text-accent-foreground font-medium',
                  'aria-current': 'page',
                }}
              >
                <Icon aria-hidden /> {label}
              </Link>
            ))}
          </nav>
          <div className="mt-auto">
            <button type="button" className={ITEM} onClick={() => setDialog('palette')}>
              <Command aria-hidden /> Go to…{' '}
              <kbd className="ml-auto text-xs text-muted-foreground">⌘K</kbd>
            </button>
            <button type="button" className={ITEM} onClick={() => setDialog('requests')}>
              <SquareTerminal aria-hidden /> Requests as curl
            </button>
            <ThemeSelect />
            <button type="button" className={ITEM} onClick={() => setApiKey(undefined)}>
              <LogOut aria-hidden /> Sign out
            </button>
          </div>
        </div>
      </header>
      <main id="content" tabIndex={-1} className="min-h-0 min-w-0 flex-1 outline-none">
        <Outlet />
      </main>
      {dialog === 'palette' && <CommandPalette onClose={closeDialog} />}
      {dialog === 'requests' && <RequestLogDialog onClose={closeDialog} />}
      {dialog === 'shortcuts' && <ShortcutsDialog onClose={closeDialog} />}
    </div>
  );
}
