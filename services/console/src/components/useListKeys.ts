import type { RefObject } from 'react';
import { isForView, useKeyDown } from '../shell/useShortcuts.ts';

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
