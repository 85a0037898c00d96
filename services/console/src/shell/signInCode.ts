import { readApiError } from '../api/apiError.ts';
import { setApiKey } from '../api/apiKey.ts';

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
