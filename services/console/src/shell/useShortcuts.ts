import { useNavigate } from '@tanstack/react-router';
import { useEffect, useEffectEvent } from 'react';
import { VIEWS } from './navigation.ts';

/** `g` waits this long for the key of a view. */
const CHORD_MS = 1_000;

/** Whether a key goes into a text rather than to the view. */
export const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName));

/**
 * The keys that work in every view: ⌘K or Ctrl-K, `?`, `/` for the search field of the view (marked
 * with `data-search`), and `g` with the key of a view.
 */
export function useShortcuts(actions: { onPalette: () => void; onHelp: () => void }): void {
  const navigate = useNavigate();
  const handle = useEffectEvent((event: KeyboardEvent, chordStarted: number): boolean => {
    if ((event.metaKey || event.ctrlKey) && event.key === 'k') {
      event.preventDefault();
      actions.onPalette();
      return false;
    }
    if (event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target)) return false;
    if (document.querySelector('dialog[open]')) return false;
    if (event.timeStamp - chordStarted < CHORD_MS) {
      const view = VIEWS.find(({ key }) => key === event.key);
      if (view) void navigate({ to: view.to });
      return false;
    }
    if (event.key === '?') actions.onHelp();
    if (event.key === '/') {
      event.preventDefault();
      document.querySelector<HTMLElement>('[data-search]')?.focus();
    }
    return event.key === 'g';
  });
  useEffect(() => {
    let chordStarted = -CHORD_MS;
    const listen = (event: KeyboardEvent): void => {
      chordStarted = handle(event, chordStarted) ? event.timeStamp : -CHORD_MS;
    };
    addEventListener('keydown', listen);
    return () => removeEventListener('keydown', listen);
  }, []);
}
