import type { CallToolResult } from '@modelcontextprotocol/client';
import { RUN_LIMITS } from '../../../shared/runs/limits.ts';
import type { ToolResult } from '../../../shared/ports/toolbox.ts';

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
export function resultText({ content, structuredContent, isError }: CallToolResult): ToolResult {
  const parts = content.map(partText);
  if (parts.length === 0 && structuredContent !== undefined)
    parts.push(JSON.stringify(structuredContent));
  const text = parts.join('\n') || '(no content)';
  return { result: text.slice(0, RUN_LIMITS.tool.resultBytes + 1), is_error: isError === true };
}
