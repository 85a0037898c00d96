const agent = { parameters: { agentId: '$response.body#/data/agent_id' } };
const session = { parameters: { sessionId: '$response.body#/data/session_id' } };

/** What may be done with an answer, by the operation that gave it. */
export const LINKS: Readonly<Record<string, Readonly<Record<string, object>>>> = {
  createAgent: {
    GetAgent: { operationId: 'getAgent', description: 'The agent that was created', ...agent },
    RunAgent: { operationId: 'runAgent', description: 'Runs it', ...agent },
  },
  runAgent: {
    GetSession: { operationId: 'getSession', description: 'The transcript so far', ...session },
    ListSessionEvents: {
      operationId: 'listSessionEvents',
      description: 'What was recorded',
      ...session,
    },
    ProveSession: {
      operationId: 'proveSession',
      description: 'That all of it is in the log',
      ...session,
    },
    EraseSession: { operationId: 'eraseSession', description: 'Erases its texts', ...session },
    CancelTurn: { operationId: 'cancelTurn', description: 'Cancels its open turn', ...session },
    RunAgain: {
      operationId: 'runAgent',
      description: 'The next turn of the session',
      parameters: { agentId: '$request.path.agentId' },
    },
  },
};
