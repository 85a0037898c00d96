import type { ChatRequest } from '../../../shared/sessions/turns/chat.ts';
import type { Reply, TestService } from './service.ts';

/** What the model answers depends on what it was asked last, and on nothing else. */
export const echo = ({ messages }: ChatRequest) => ({
  text: `answer to ${String(messages.at(-1)!.content)}`,
});

/** What tests do with forks of sessions; each call has to succeed. */
export function forking(service: TestService) {
  const done = ({ status, body }: Reply) => {
    if (status !== 200) throw new Error(JSON.stringify(body));
    return body.data;
  };
  return {
    /** Goes on with a session, or begins one; resolves with its id. */
    async run(agent: string, inputs: readonly string[], session?: string): Promise<string> {
      let session_id = session;
      for (const input of inputs) {
        const body = { input, ...(session_id && { session_id }) };
        ({ session_id } = done(await service.post(`/v1/agents/${agent}/run`, body)));
      }
      return session_id!;
    },
    /** Resolves with the fork as it was answered. */
    fork: async (session: string, at_turn: number) =>
      done(await service.post(`/v1/sessions/${session}/fork`, { at_turn })),
    read: async (session: string, query = '') =>
      done(await service.get(`/v1/sessions/${session}${query}`)),
    events: async (session: string) =>
      done(await service.get(`/v1/sessions/${session}/events?limit=1000`)),
    erase: async (session: string) =>
      done(await service.send('DELETE', `/v1/sessions/${session}`, '')),
  };
}

/** Of a transcript: number and input of each turn. */
export const inputsOf = ({ turns }: { turns: { turn: number; input: string }[] }): string[] =>
  turns.map(({ turn, input }) => `${turn} ${input}`);
