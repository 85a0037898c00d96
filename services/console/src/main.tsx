import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode, useEffect, useState, useSyncExternalStore } from 'react';
import { createRoot } from 'react-dom/client';
import { getApiKey, onApiKeyChange } from './api/apiKey.ts';
import { queryClient } from './api/queryClient.ts';
import { router } from './router.tsx';
import { redeemSignInCode, SignIn } from './shell/SignIn.tsx';
import { applyTheme } from './shell/ThemeSelect.tsx';
import './styles.css';

/** The console: the sign-in until there is a key, the views after it. */
function App() {
  const apiKey = useSyncExternalStore(onApiKeyChange, getApiKey);
  const [problem, setProblem] = useState<string>();
  const [isRedeeming, setRedeeming] = useState(() => location.hash.startsWith('#code='));
  useEffect(() => {
    if (!isRedeeming) return;
    void redeemSignInCode()
      .catch((error: unknown) => setProblem((error as Error).message))
      .finally(() => setRedeeming(false));
  }, [isRedeeming]);
  if (isRedeeming) return null;
  if (apiKey === undefined) return <SignIn problem={problem} />;
  return (
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  );
}

applyTheme();
createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
