import { atif } from './atif.ts';
import { inspect } from './inspect.ts';
import { openaiChat } from './openaiChat.ts';
import { otel } from './otel.ts';
import type { ExportedSession, SessionWriter } from './record.ts';

/** What sessions are exported as: `events` are the events as they were recorded. */
export const EXPORT_FORMATS = ['openai-chat', 'otel', 'inspect', 'atif', 'events'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

/** Makes what writes one session. */
export type MakeWriter = (session: ExportedSession) => SessionWriter;

/** What writes a session, by its format. */
export const SESSION_WRITERS: Readonly<Record<Exclude<ExportFormat, 'events'>, MakeWriter>> = {
  'openai-chat': openaiChat,
  otel,
  inspect,
  atif,
};
