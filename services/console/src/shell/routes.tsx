import { createRootRoute, createRoute, redirect } from '@tanstack/react-router';
import { EmptyState, ErrorState } from '../components/view.tsx';
import { Shell } from './Shell.tsx';

/** The frame of all views. */
export const shellRoute = createRootRoute({
  component: Shell,
  errorComponent: ({ error, reset }) => <ErrorState error={error} onRetry={reset} />,
  notFoundComponent: () => (
    <EmptyState title="There is no such view">Choose one from the menu.</EmptyState>
  ),
});

export const indexRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: '/agents' });
  },
});
