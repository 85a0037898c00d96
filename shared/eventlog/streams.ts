export const accountStream = (accountId: string): string => `account-${accountId}`;
export const agentStream = (agentId: string): string => `agent-${agentId}`;
export const sessionStream = (sessionId: string): string => `session-${sessionId}`;

/** The id that a stream's name carries: everything after the first dash. */
export const streamId = (stream: string): string => stream.slice(stream.indexOf('-') + 1);

/** What a stream is of: everything before the first dash. The types of its events begin with it, and a dot. */
export const streamCategory = (stream: string): string => stream.slice(0, Math.max(0, stream.indexOf('-')));

/** True when a stream of that name may hold an event of that type. */
export const belongsIn = (stream: string, type: string): boolean => type.startsWith(`${streamCategory(stream)}.`);
