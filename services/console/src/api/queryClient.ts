import { QueryClient } from '@tanstack/react-query';
import { ApiError } from './apiError.ts';
import { onApiKeyChange } from './apiKey.ts';

const MOST_RETRIES = 2;

/** The cached responses of the service. */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      retry: (count, error) =>
        count < MOST_RETRIES && error instanceof ApiError && error.retry === 'same_key',
    },
  },
});
// The responses to one key are not shown to the next.
onApiKeyChange(() => queryClient.clear());
