import { useNavigate, useSearch } from '@tanstack/react-router';
import { Pause, Play } from 'lucide-react';
import { useState } from 'react';
import { Button } from '../components/Button.tsx';
import { View } from '../components/view.tsx';
import { SessionFilterBar } from './SessionFilterBar.tsx';
import { SessionList } from './SessionList.tsx';
import type { SessionFilters } from './search.ts';

/** The account's sessions: filters, search, and a list that follows new ones. */
export function SessionsView() {
  const filters = useSearch({ from: '/sessions' });
  const navigate = useNavigate({ from: '/sessions' });
  const [isLive, setLive] = useState(true);
  const setFilters = (next: SessionFilters): void => void navigate({ search: next, replace: true });
  return (
    <View
      title="Sessions"
      className="flex flex-col overflow-hidden p-0 md:p-0"
      actions={
        <Button variant="outline" size="small" onClick={() => setLive(!isLive)}>
          {isLive ? <Pause aria-hidden /> : <Play aria-hidden />}
          {isLive ? 'Pause updates' : 'Resume updates'}
        </Button>
      }
    >
      <SessionFilterBar filters={filters} onChange={setFilters} />
      <SessionList
        key={JSON.stringify(filters)}
        filters={filters}
        isLive={isLive}
        onReset={() => setFilters({})}
      />
    </View>
  );
}
