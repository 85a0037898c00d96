import { useNavigate } from '@tanstack/react-router';
import { useEffect, useEffectEvent, useRef, type RefObject } from 'react';
import { VIEWS } from './navigation.ts';

/** `g` waits this long for the key of a view. */
const CHORD_MS = 1_000;

/** Whether a key goes into a text rather than to the view. */
const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName));

/** Whether a key is for the view: not for a text, a dialog or the browser. */
export const isForView = (event: KeyboardEvent): boolean =>
  !(event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target)) &&
  !document.querySelector('dialog[open]');

/** Calls the latest `handle` for each key that is pressed in the page. */
export function useKeyDown(handle: (event: KeyboardEvent) => void): void {
  const latest = useEffectEvent(handle);
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => latest(event);
    addEventListener('keydown', listen);
    return () => removeEventListener('keydown', listen);
  }, []);
}

/**
 * The keys that work in every view: ⌘K or Ctrl-K, `?`, `/` for the search field of the view (marked
 * with `data-search`), and `g` with the key of a view.
 */
export function useShortcuts(actions: { onPalette: () => void; onHelp: () => void }): void {
  const navigate = useNavigate();
  const chordStarted = useRef(-CHORD_MS);
  useKeyDown((event) => {
    const isChord = event.timeStamp - chordStarted.current < CHORD_MS;
    chordStarted.current = -CHORD_MS;
    if ((event.metaKey || event.ctrlKey) && event.key === 'k') {
      event.preventDefault();
      return actions.onPalette();
    }
    if (!isForView(event)) return;
    const view = isChord && VIEWS.find(({ key }) => key === event.key);
    if (view) return void navigate({ to: view.to });
    if (event.key === '?') actions.onHelp();
    if (event.key === '/') {
      event.preventDefault();
      document.querySelector<HTMLElement>('[data-search]')?.focus();
    }
    if (event.key === 'g') chordStarted.current = event.timeStamp;
  });
}

/**
 * `j` and `k` move the focus to the first link of the next and the previous entry of a list, whose
 * entries have their number as `data-index`. `show` scrolls to an entry that is not rendered yet.
 */
export function useListKeys(
  list: RefObject<HTMLElement | null>,
  count: number,
  show: (index: number) => void = () => undefined,
): void {
  useKeyDown((event) => {
    const step = { j: 1, k: -1 }[event.key];
    if (step === undefined || count === 0 || !isForView(event)) return;
    const entry = document.activeElement?.closest<HTMLElement>('[data-index]');
    const isWithin = entry && list.current?.contains(entry);
    const index = isWithin ? Number(entry.dataset['index']) + step : 0;
    const next = Math.min(Math.max(index, 0), count - 1);
    show(next);
    requestAnimationFrame(() =>
      list.current?.querySelector<HTMLElement>(`[data-index="${next}"] a`)?.focus(),
    );
  });
}
