import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { useEffect, useState, useSyncExternalStore } from 'react';
import { ApiError } from '../api/apiError.ts';
import { getApiKey, onApiKeyChange } from '../api/apiKey.ts';
import { router } from '../router.tsx';
import { redeemSignInCode, SignIn } from './SignIn.tsx';

const MOST_RETRIES = 2;
const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      retry: (count, error) =>
        count < MOST_RETRIES && error instanceof ApiError && error.retry === 'same_key',
    },
  },
});

/** The console: the sign-in until there is a key, the views after it. */
export function App() {
  const apiKey = useSyncExternalStore(onApiKeyChange, getApiKey);
  const [problem, setProblem] = useState<string>();
  const [isRedeeming, setRedeeming] = useState(() => location.hash.startsWith('#code='));
  useEffect(() => {
    if (!isRedeeming) return;
    void redeemSignInCode()
      .catch((error: unknown) => setProblem((error as Error).message))
      .finally(() => setRedeeming(false));
  }, [isRedeeming]);
  // What one key could read is not shown to the next.
  useEffect(() => queryClient.clear(), [apiKey]);
  if (isRedeeming) return null;
  if (apiKey === undefined) return <SignIn problem={problem} />;
  return (
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  );
}
