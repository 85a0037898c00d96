import {
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  type CallToolResult,
} from '@modelcontextprotocol/client';
import { RUN_LIMITS } from '../../../shared/runs/limits.ts';
import type { CallReply, Failure } from '../messages.ts';
import { isReplaced } from './malformed.ts';

type Part = CallToolResult['content'][number];

const bytesOf = (base64: string): number => Buffer.byteLength(base64, 'base64');

/** Other content than text is named, so that the model knows of it. */
function partText(part: Part): string {
  switch (part.type) {
    case 'text':
      return part.text;
    case 'image':
    case 'audio':
      return `[${part.type}, ${part.mimeType}, ${bytesOf(part.data)} bytes]`;
    case 'resource_link':
      return `[resource ${part.uri}]`;
    case 'resource': {
      const { resource } = part;
      return 'text' in resource
        ? resource.text
        : `[resource ${resource.uri}, ${bytesOf(resource.blob)} bytes]`;
    }
    default:
      return '[something that is no text]';
  }
}

/**
 * A server's result as text for a model: its parts, or its structured content without parts. The
 * text is cut just above the limit of a result, so that it is recognized as too long.
 */
export function resultText({ content, structuredContent, isError }: CallToolResult): CallReply {
  const parts = content.map(partText);
  if (parts.length === 0 && structuredContent !== undefined)
    parts.push(JSON.stringify(structuredContent));
  const text = parts.join('\n') || '(no content)';
  return {
    result: text.slice(0, RUN_LIMITS.tool.resultBytes + 1),
    is_error: isError === true,
    invalidItems: content.filter(isReplaced).length,
  };
}

/** The reason for operators. It quotes nothing from the server, which may be hostile. */
function reasonOf(error: unknown, isOpening: boolean): string {
  const code: unknown = (error as { code?: unknown } | undefined)?.code;
  if (error instanceof SdkError) return `it does not answer as it should (${error.code})`;
  if (typeof code === 'string') return `it can’t be started or reached (${code})`;
  return isOpening ? 'it can’t be started or reached' : 'it has ended';
}

/** Errors of reading a response that is no message. */
const NO_MESSAGE: readonly unknown[] = ['SyntaxError', 'ZodError'];
/** Errors without a response. The library's others are those of a response, such as its status. */
const LOST: readonly unknown[] = [
  SdkErrorCode.ConnectionClosed,
  SdkErrorCode.NotConnected,
  SdkErrorCode.SendFailed,
];

function kindOf(error: unknown): Failure['kind'] {
  if (error instanceof ProtocolError) return 'refused';
  if (!(error instanceof SdkError))
    return NO_MESSAGE.includes((error as Error | undefined)?.name) ? 'invalid' : 'lost';
  if (error.code === SdkErrorCode.RequestTimeout) return 'timeout';
  return LOST.includes(error.code) ? 'lost' : 'invalid';
}

/** A failure to open a connection, with what the server said last on its standard error. */
export const openingFailure = (error: unknown, lastWords: string): Failure => ({
  kind: kindOf(error),
  reason: reasonOf(error, true),
  quote: lastWords,
});

function quoteOf(error: unknown): string {
  if (error instanceof ProtocolError) return error.message.slice(0, RUN_LIMITS.tool.resultBytes);
  return error instanceof SdkHttpError && error.status ? `HTTP status ${error.status}` : '';
}

/** A failure of a request, with what the server said where it refused it, or its HTTP status. */
export function requestFailure(error: unknown, hasSession: boolean): Failure {
  if (hasSession && error instanceof SdkHttpError && error.status === 404)
    return { kind: 'forgotten', reason: 'it has forgotten the session', quote: '' };
  return { kind: kindOf(error), reason: reasonOf(error, false), quote: quoteOf(error) };
}
