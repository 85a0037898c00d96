import type { CallToolResult } from '@modelcontextprotocol/client';
import type { ToolResult } from '../../shared/ports/toolbox.ts';

type Part = CallToolResult['content'][number];

const bytesOf = (base64: string): number => Buffer.byteLength(base64, 'base64');

/** What is no text is named, so that a model knows that it was there. */
function textOf(part: Part): string {
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

/** The answer of a server as text for a model: its parts, or the structure that it has instead. */
export function resultText({ content, structuredContent, isError }: CallToolResult): ToolResult {
  const parts = content.map(textOf);
  if (parts.length === 0 && structuredContent !== undefined)
    parts.push(JSON.stringify(structuredContent));
  return { result: parts.join('\n') || '(no content)', is_error: isError === true };
}
