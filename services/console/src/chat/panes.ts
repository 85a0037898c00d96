/** The most sessions side by side. A browser opens six connections to a host, and each may stream. */
export const MOST_PANES = 4;

/** The sessions side by side, with commas; a name that begins with `new` is one to be started. */
export interface ChatSearch {
  sessions?: string;
}

export const parseChatSearch = ({ sessions }: Record<string, unknown>): ChatSearch =>
  typeof sessions === 'string' && sessions !== '' ? { sessions } : {};

export const isNewPane = (pane: string): boolean => pane.startsWith('new');

/** The panes of an address, each once; a single new one where it names none. */
export function panesOf({ sessions = '' }: ChatSearch): string[] {
  const panes = new Set(sessions.split(',').filter((pane) => pane !== ''));
  return panes.size === 0 ? ['new1'] : [...panes].slice(0, MOST_PANES);
}

/** The address of panes. */
export const searchOf = (panes: readonly string[]): ChatSearch =>
  panes.length === 1 && isNewPane(panes[0]!) ? {} : { sessions: panes.join(',') };

/** A name for one more new pane. */
export function nextNewPane(panes: readonly string[]): string {
  let number = 1;
  while (panes.includes(`new${number}`)) number += 1;
  return `new${number}`;
}
