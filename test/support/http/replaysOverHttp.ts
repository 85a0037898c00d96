import type { TestService } from './service.ts';
import { eventually } from '../processes/operator.ts';

/** What a client does with replays; their tools answer from the log. */
export function replaysOf(service: TestService) {
  const read = async (id: string) => (await service.get(`/v1/replays/${id}`)).body.data;
  /** Resolves with the id. */
  const start = async (sessions: readonly string[], settings: object = {}): Promise<string> => {
    const asked = { sessions, tools: 'recorded', budget: { tokens: 1_000_000 }, ...settings };
    return (await service.post('/v1/replays', asked)).body.data.replay_id;
  };
  /** Resolves with the replay once it has ended. */
  const ended = (id: string) =>
    eventually(
      () => read(id),
      // One that was written beside the service may not be shown yet.
      (replay) => replay !== undefined && replay.status !== 'running',
    );
  return {
    read,
    start,
    ended,
    sessions: async (id: string) => (await service.get(`/v1/replays/${id}/sessions`)).body.data,
    /** Starts one, and resolves with it once it has ended. */
    run: async (sessions: readonly string[], settings: object = {}) =>
      ended(await start(sessions, settings)),
  };
}
