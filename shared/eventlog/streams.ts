export const accountStream = (accountId: string): string => `account-${accountId}`;
export const agentStream = (agentId: string): string => `agent-${agentId}`;
export const sessionStream = (sessionId: string): string => `session-${sessionId}`;

/** The id that a stream's name carries: everything after the first dash. */
export const streamId = (stream: string): string => stream.slice(stream.indexOf('-') + 1);
