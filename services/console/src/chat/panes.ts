/** The most sessions side by side. A browser opens six connections to a host, and each may stream. */
export const MOST_PANES = 4;

/** The state of the view in its address. */
export interface ChatSearch {
  /** The sessions side by side, with commas; a name that begins with `new` is one to be started. */
  sessions?: string;
  /** The one that a phone shows. */
  shown?: string;
}

export function parseChatSearch({ sessions, shown }: Record<string, unknown>): ChatSearch {
  return {
    ...(typeof sessions === 'string' && sessions !== '' && { sessions }),
    ...(typeof shown === 'string' && { shown }),
  };
}

export const isNewPane = (pane: string): boolean => pane.startsWith('new');

/** The panes of an address, each once; a single new one where it names none. */
export function panesOf({ sessions = '' }: ChatSearch): string[] {
  const panes = new Set(sessions.split(',').filter((pane) => pane !== ''));
  return panes.size === 0 ? ['new1'] : [...panes].slice(0, MOST_PANES);
}

/** The address of panes. */
export function searchOf(panes: readonly string[], shown: string): ChatSearch {
  const isDefault = panes.length === 1 && isNewPane(panes[0]!);
  return {
    ...(!isDefault && { sessions: panes.join(',') }),
    ...(shown !== panes[0] && { shown }),
  };
}

/** A name for one more new pane. */
export function nextNewPane(panes: readonly string[]): string {
  let number = 1;
  while (panes.includes(`new${number}`)) number += 1;
  return `new${number}`;
}
