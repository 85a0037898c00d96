import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { api, dataOf } from '../../api/client.ts';
import { newIdempotencyKey } from '../../api/idempotencyKey.ts';

/** Forks a session after a turn, and shows the fork. */
export function useFork(sessionId: string) {
  const navigate = useNavigate();
  const client = useQueryClient();
  const [key] = useState(newIdempotencyKey);
  return useMutation({
    mutationFn: (turn: number) =>
      dataOf(
        api.POST('/v1/sessions/{sessionId}/fork', {
          params: {
            path: { sessionId },
            header: { 'Idempotency-Key': `${key}-${turn}` },
          },
          body: { at_turn: turn },
        }),
      ),
    onSuccess: ({ session_id }) => {
      void client.invalidateQueries({ queryKey: ['sessions'] });
      return navigate({ to: '/sessions/$sessionId', params: { sessionId: session_id } });
    },
  });
}
