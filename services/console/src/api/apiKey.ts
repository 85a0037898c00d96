const NAME = 'turnlog.api-key';
const listeners = new Set<() => void>();

/** The API key of this tab, or undefined before sign-in. Session storage ends with the tab. */
export const getApiKey = (): string | undefined => sessionStorage.getItem(NAME) ?? undefined;

/** Signs in with a key, or out with undefined. */
export function setApiKey(key: string | undefined): void {
  if (key === undefined) sessionStorage.removeItem(NAME);
  else sessionStorage.setItem(NAME, key);
  for (const listener of listeners) listener();
}

/** Calls `listener` at each sign-in and sign-out; returns how to stop that. */
export function onApiKeyChange(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
