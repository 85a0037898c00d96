import { requireScope, unauthorizedError } from '../accounts/authenticate.ts';
import { findOwnAgent } from '../agents/queries.ts';
import type { Actor } from '../commandHandling/context.ts';
import { readPresentEvents } from '../eventlog/reading/readPresentEvents.ts';
import { parseAccountId } from '../eventlog/reading/streamOwner.ts';
import { isIdOf, sessionStream } from '../eventlog/streams.ts';
import { TurnlogError } from '../lib/errors/turnlogError.ts';
import { LIMITS } from '../limits.ts';
import { isoTime } from '../ports/clock.ts';
import type { RunContext } from '../runs/context.ts';
import type { SessionStartedData } from '../sessions/events.ts';
import { sessionNotFoundError } from '../sessions/queries.ts';
import { hashChatUser, signChatToken, type ChatGrant } from './chatToken.ts';

type Sources = Pick<RunContext, 'store' | 'cachedRows' | 'clock'>;

/** The agent and the session that a request names. At least one of them is always present. */
export interface ChatTarget {
  agent_id?: string | undefined;
  session_id?: string | undefined;
}

export const chatForbiddenError = (
  message = 'A chat token may only run its agent, and read and cancel turns of its sessions.',
): TurnlogError => new TurnlogError('forbidden', message);

/** False for end users, who see the answers of a model and its tool calls, but not its reasoning. */
export const seesReasoning = ({ chat }: Pick<Actor, 'chat'>): boolean => chat === undefined;

const SECOND_MS = 1_000;

type SessionStart = Pick<SessionStartedData, 'agent_id' | 'user_hmac'>;

/**
 * The start of an account's session from the log, without its texts; undefined for a session
 * that is unknown or of another account. Throws `store_unavailable`.
 */
async function readSessionStart(
  { store }: Pick<Sources, 'store'>,
  account_id: string,
  session_id: string,
): Promise<SessionStart | undefined> {
  if (!isIdOf('session', session_id)) return undefined;
  const beginning = { direction: 'forwards', from: 0, limit: 1 } as const;
  const [first] = await readPresentEvents(store, sessionStream(session_id), beginning);
  if (first?.type !== 'session.started.v1' || parseAccountId(first) !== account_id)
    return undefined;
  return JSON.parse(first.data) as SessionStart;
}

/** True if the token is for that session, or for the end user who started it with the agent. */
const covers = (
  { agent_id, user_hmac, session_id }: ChatGrant,
  named: string,
  start: SessionStart,
): boolean =>
  start.agent_id === agent_id &&
  (session_id === undefined ? start.user_hmac === user_hmac : session_id === named);

/**
 * Requires that the chat token of the actor is for what a request names. Throws `forbidden` for
 * another agent, or for a new session with the token of one session; `session_not_found` for a
 * session of another user, as for an unknown one; `store_unavailable`.
 */
export async function requireChatAccess(
  sources: Pick<Sources, 'store'>,
  { account_id, chat }: Pick<Actor, 'account_id' | 'chat'>,
  { agent_id, session_id }: ChatTarget,
): Promise<void> {
  if (!chat) return;
  if (agent_id !== undefined && agent_id !== chat.agent_id)
    throw chatForbiddenError('The chat token is for another agent.');
  if (session_id === undefined) {
    if (agent_id !== undefined && chat.session_id === undefined) return;
    throw chatForbiddenError(
      'The chat token is for one session, which the request must name in session_id.',
    );
  }
  const start = await readSessionStart(sources, account_id, session_id);
  if (!start || !covers(chat, session_id, start)) throw sessionNotFoundError();
}

/** The grant to request: all sessions of an end user with an agent, or one session. */
interface ChatTokenInput {
  agent_id: string;
  user: string;
  session_id?: string | undefined;
  expires_in_seconds?: number | undefined;
}

/** A chat token, and the UI component that its agent names. */
export interface IssuedChatToken {
  token: string;
  expires_at: string;
  agent_id: string;
  component: string;
}

/**
 * Issues a chat token for an agent of the actor's account. It ends with the key of the actor at the
 * latest. Nothing is recorded. Throws `agent_not_found`, `agent_erased`, `forbidden` for a key
 * without the scope sessions:read, `session_not_found`, `unauthorized`, `store_unavailable`,
 * `key_missing`.
 */
export async function issueChatToken(
  { store, cachedRows, clock }: Sources,
  { account_id, key_id }: Pick<Actor, 'account_id' | 'key_id'>,
  { user, session_id, ...input }: ChatTokenInput,
): Promise<IssuedChatToken> {
  const { agent_id, component } = await findOwnAgent(cachedRows, account_id, input.agent_id);
  const key = await cachedRows.findApiKey(key_id);
  if (!key) throw unauthorizedError();
  requireScope(key.scopes, 'sessions:read');
  const { expires_in_seconds: seconds = LIMITS.chatTokens.defaultLifetimeSeconds } = input;
  const end = clock.now() + seconds * SECOND_MS;
  const expires_at = key.expires_at === null ? end : Math.min(end, Date.parse(key.expires_at));
  if (session_id !== undefined) {
    const start = await readSessionStart({ store }, account_id, session_id);
    if (start?.agent_id !== agent_id) throw sessionNotFoundError();
  }
  const user_hmac = await hashChatUser(store.keys, account_id, user);
  if (user_hmac === undefined) throw unauthorizedError();
  const only = session_id === undefined ? {} : { session_id };
  const claims = { key_id, agent_id, user_hmac, ...only, expires_at };
  const token = await signChatToken(store.keys, account_id, claims);
  if (token === undefined) throw unauthorizedError();
  return { token, expires_at: isoTime(expires_at), agent_id, component };
}
