import { ProtocolError, SdkError, SdkErrorCode } from '@modelcontextprotocol/client';
import { RUN_LIMITS } from '../../../shared/runs/limits.ts';
import type { Failure } from '../messages.ts';

/** The reason for operators. It quotes nothing from the server, which may be hostile. */
function reasonOf(error: unknown, isOpening: boolean): string {
  const code: unknown = (error as { code?: unknown } | undefined)?.code;
  if (error instanceof SdkError) return `it does not answer as it should (${error.code})`;
  if (typeof code === 'string') return `it can’t be started or reached (${code})`;
  return isOpening ? 'it can’t be started or reached' : 'it has ended';
}

function kindOf(error: unknown): Failure['kind'] {
  if (error instanceof ProtocolError) return 'refused';
  if (!(error instanceof SdkError)) return 'lost';
  if (error.code === SdkErrorCode.RequestTimeout) return 'timeout';
  return error.code === SdkErrorCode.InvalidResult ? 'invalid' : 'lost';
}

/** A failure to open a connection, with what the server said last on its standard error. */
export const openingFailure = (error: unknown, lastWords: string): Failure => ({
  kind: kindOf(error),
  reason: reasonOf(error, true),
  quote: lastWords,
});

/** A failure of a request, with what the server said where it refused it. */
export function requestFailure(error: unknown): Failure {
  const kind = kindOf(error);
  const quote =
    kind === 'refused' ? (error as Error).message.slice(0, RUN_LIMITS.tool.resultBytes) : '';
  return { kind, reason: reasonOf(error, false), quote };
}
