import {
  isSpecType,
  specTypeSchemas,
  type CallToolResult,
  type JSONRPCMessage,
} from '@modelcontextprotocol/client';
import { RUN_LIMITS } from '../../../shared/runs/limits.ts';

/** A tool that is not as the protocol describes it. */
export interface MalformedTool {
  name: string;
  /** Why it is not offered. It quotes nothing from the server. */
  flaw: string;
}

type Content = CallToolResult['content'][number];

/** Marks an item that replaces one that is not valid. */
const MARK = 'turnlog/invalid';
const REPLACEMENT: Content = {
  type: 'text',
  text: '[content that is not valid]',
  _meta: { [MARK]: true },
};

/** True for an item of a result that replaces one that is not valid. */
export const isReplaced = ({ _meta }: Content): boolean => _meta?.[MARK] === true;

/** The items of a result. Invalid ones are replaced. */
function validItems(items: readonly unknown[]): Content[] {
  let invalid = 0;
  return items.map((item) => {
    if (invalid < MAX_INVALID_ITEMS && isSpecType.ContentBlock(item)) return item;
    invalid += 1;
    return REPLACEMENT;
  });
}

/** The name of the first member that is not valid, which is one of the protocol's. */
function flawOf(tool: unknown): string {
  const checked = specTypeSchemas.Tool['~standard'].validate(tool);
  const [issue] = ('issues' in checked && checked.issues) || [];
  const [member] = issue?.path ?? [];
  const name = typeof member === 'object' ? member.key : member;
  return name === undefined ? 'it is not an object' : `its ${String(name)} is not valid`;
}

/**
 * After so many invalid items of a result, the others are taken for invalid. A message may have 50,000
 * of them, and finding each one invalid takes several microseconds.
 */
const MAX_INVALID_ITEMS = 1_000;

/** The longest name of a tool that can be offered. */
const NAME_CHARS = 128;

/** A copy of the name, because a part of a string would keep the whole message in memory. */
function nameOf(tool: unknown, index: number): string {
  const name: unknown = (tool as { name?: unknown } | null)?.name;
  return typeof name === 'string'
    ? Buffer.from(name.slice(0, NAME_CHARS)).toString()
    : `number ${index + 1}`;
}

/**
 * Keeps one malformed part from spoiling a whole message, which the library would reject: takes
 * malformed tools out of lists, and replaces malformed items of results. Responses without a pending
 * request are emptied, because the library writes them as JSON into an error. `repair` changes the
 * message in place; it must see each message before the library does, and `noteSent` each message that
 * is sent.
 */
export function createMessageRepair() {
  let malformed: MalformedTool[] = [];
  const pending = new Set<number>();

  function validTools(tools: readonly unknown[]): unknown[] {
    return tools.filter((tool, index) => {
      if (isSpecType.Tool(tool)) return true;
      if (malformed.length < RUN_LIMITS.mcp.tools)
        malformed.push({ name: nameOf(tool, index), flaw: flawOf(tool) });
      return false;
    });
  }

  return {
    noteSent(message: JSONRPCMessage): void {
      if (!('method' in message)) return;
      if ('id' in message) pending.add(Number(message.id));
      else if (message.method === 'notifications/cancelled')
        pending.delete(Number(message.params?.['requestId']));
    },
    repair(message: JSONRPCMessage): void {
      if (!('result' in message || 'error' in message)) return;
      // The library compares ids as numbers.
      if (!pending.delete(Number(message.id))) {
        if ('result' in message) message.result = {};
        else message.error = { code: message.error.code, message: '' };
        return;
      }
      if (!('result' in message) || typeof message.result !== 'object') return;
      const result = message.result as { tools?: unknown; content?: unknown };
      if (Array.isArray(result.tools)) result.tools = validTools(result.tools);
      if (Array.isArray(result.content)) result.content = validItems(result.content);
    },
    /** The malformed tools since the last call. */
    takeMalformed(): readonly MalformedTool[] {
      const malformedSoFar = malformed;
      malformed = [];
      return malformedSoFar;
    },
  };
}
