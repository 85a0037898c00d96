import { atif } from './atif.ts';
import { inspect } from './inspect.ts';
import { openaiChat } from './openaiChat.ts';
import { otel } from './otel.ts';
import type { ExportedSession, SessionWriter } from './record.ts';

/** The export formats of sessions. `events` exports the events as recorded. */
export const EXPORT_FORMATS = ['openai-chat', 'otel', 'inspect', 'atif', 'events'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

/** Creates the writer of one session. */
export type MakeWriter = (session: ExportedSession) => SessionWriter;

/** The writers by format. */
export const SESSION_WRITERS: Readonly<Record<Exclude<ExportFormat, 'events'>, MakeWriter>> = {
  'openai-chat': openaiChat,
  otel,
  inspect,
  atif,
};
