import { useEffect, useEffectEvent, type RefObject } from 'react';

interface ListKeys {
  count: number;
  /** The entry that the keys move from; -1 before the first move. */
  active: number;
  setActive: (index: number) => void;
  /** Scrolls to an entry. */
  show: (index: number) => void;
  /** The element with the entries. A link or button with `data-index` in it is the entry's. */
  scroller: RefObject<HTMLElement | null>;
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.matches('input, textarea, select, [contenteditable]');

/** `j` and `k` move the focus through the entries of a virtual list, where Enter opens one. */
export function useListKeys({ count, active, setActive, show, scroller }: ListKeys): void {
  const handle = useEffectEvent((event: KeyboardEvent) => {
    const step = { j: 1, k: -1 }[event.key];
    if (step === undefined || event.metaKey || event.ctrlKey || event.altKey) return;
    if (isTyping(event.target) || document.querySelector('dialog[open]')) return;
    const next = Math.min(Math.max(active + step, 0), count - 1);
    if (next < 0) return;
    show(next);
    setActive(next);
  });
  useEffect(() => {
    addEventListener('keydown', handle);
    return () => removeEventListener('keydown', handle);
  }, []);
  // The entry may come into the document only after the list has scrolled.
  useEffect(() => {
    if (active < 0) return undefined;
    const frame = requestAnimationFrame(() =>
      scroller.current
        ?.querySelector<HTMLElement>(`[data-index="${active}"]`)
        ?.focus({ preventScroll: true }),
    );
    return () => cancelAnimationFrame(frame);
  }, [active, scroller]);
}
