/** The most sessions side by side. A browser opens six connections to a host, and each may stream. */
export const MOST_PANES = 4;

/** What `sessions` of the address says of a pane that has no session yet, with a number. */
const NEW = 'new';

export const isNewPane = (pane: string): boolean => pane.startsWith(NEW);

/** The panes of an address: session ids, and `new` with a number, each once. */
export function parsePanes(sessions: string | undefined): string[] {
  const panes = (sessions ?? '').split(',').filter((pane) => pane !== '');
  return panes.length === 0 ? [`${NEW}1`] : [...new Set(panes)].slice(0, MOST_PANES);
}

/** The panes as the address has them; a single new one is not mentioned. */
export function formatPanes(panes: readonly string[]): string | undefined {
  const isDefault = panes.length === 0 || (panes.length === 1 && isNewPane(panes[0]!));
  return isDefault ? undefined : panes.join(',');
}

/** A name for one more new pane. */
export function nextNewPane(panes: readonly string[]): string {
  let number = 1;
  while (panes.includes(`${NEW}${number}`)) number += 1;
  return `${NEW}${number}`;
}
