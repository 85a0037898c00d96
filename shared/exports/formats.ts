import { createAtifWriter } from './atif.ts';
import { createInspectWriter } from './inspect.ts';
import { createOpenaiChatWriter } from './openaiChat.ts';
import { createOtelWriter } from './otel.ts';
import type { ExportedSession, SessionWriter } from './record.ts';

/** The export formats of sessions. `events` exports the events as recorded. */
export const EXPORT_FORMATS = ['openai-chat', 'otel', 'inspect', 'atif', 'events'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

/** Creates the writer of one session. */
export type MakeWriter = (session: ExportedSession) => SessionWriter;

/** The writers by format. */
export const SESSION_WRITERS: Readonly<Record<Exclude<ExportFormat, 'events'>, MakeWriter>> = {
  'openai-chat': createOpenaiChatWriter,
  otel: createOtelWriter,
  inspect: createInspectWriter,
  atif: createAtifWriter,
};
