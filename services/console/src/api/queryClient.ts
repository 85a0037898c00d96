import { QueryClient } from '@tanstack/react-query';
import { ApiError } from './apiError.ts';
import { onApiKeyChange } from './apiKey.ts';

const MOST_RETRIES = 2;

/** What the views have read from the service. */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      retry: (count, error) =>
        count < MOST_RETRIES && error instanceof ApiError && error.retry === 'same_key',
    },
  },
});
// What one key could read is not shown to the next.
onApiKeyChange(() => queryClient.clear());
