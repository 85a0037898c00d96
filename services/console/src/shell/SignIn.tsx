import { useActionState, useState } from 'react';
import { readApiError } from '../api/apiError.ts';
import { setApiKey } from '../api/apiKey.ts';
import { Button } from '../components/Button.tsx';
import { TextField } from '../components/Field.tsx';

/** Why a key can't sign in, or undefined. A key that lacks scopes can. */
async function problemOf(key: string): Promise<string | undefined> {
  try {
    const response = await fetch('/v1/models', { headers: { 'x-api-key': key } });
    return response.status === 401 ? (await readApiError(response)).message : undefined;
  } catch {
    return 'The service can’t be reached. Check that it is running, then try again.';
  }
}

/**
 * Redeems the one-time code of the link that `npm start` prints. The code is removed from the
 * address at once. Throws an `ApiError` for a code that was used or has expired.
 */
export async function redeemSignInCode(): Promise<void> {
  const code = decodeURIComponent(location.hash.slice('#code='.length));
  history.replaceState(null, '', location.pathname + location.search);
  const response = await fetch('/console/sign-in', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ code }),
  });
  if (!response.ok) throw await readApiError(response);
  const { data } = (await response.json()) as { data: { api_key: string } };
  setApiKey(data.api_key);
}

/** Signs in with an API key, which is kept until the tab is closed. */
export function SignIn({ problem }: { problem: string | undefined }) {
  const [key, setKey] = useState('');
  const [error, signIn, isChecking] = useActionState(async () => {
    const trimmed = key.trim();
    const found = trimmed === '' ? 'Enter an API key.' : await problemOf(trimmed);
    if (found === undefined) setApiKey(trimmed);
    return found;
  }, problem);
  return (
    <main className="grid h-full place-items-center p-4">
      <form action={signIn} className="grid w-full max-w-sm gap-5">
        <div className="grid gap-1">
          <h1 className="text-xl font-semibold">Turnlog</h1>
          <p className="text-muted-foreground">Sign in with an API key.</p>
        </div>
        <TextField
          label="API key"
          error={error}
          hint="It stays in this tab, and is forgotten when you close the tab."
          type="password"
          autoComplete="off"
          spellCheck={false}
          value={key}
          onValue={setKey}
        />
        <Button variant="primary" type="submit" disabled={isChecking}>
          {isChecking ? 'Checking…' : 'Sign in'}
        </Button>
        <p className="text-xs text-muted-foreground">
          No key yet? <code>npm start</code> prints the first one, and{' '}
          <code>npm run cli -- keys issue</code> makes more.
        </p>
      </form>
    </main>
  );
}
