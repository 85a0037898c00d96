import { LIMITS } from '../../shared/limits.ts';
import type { ResponseMemory } from './boundedBuffer.ts';
import type { Delta } from './chunk.ts';
import { createTextAccumulator, type TextAccumulator } from './textAccumulator.ts';

/** A part of a tool call, as a chunk of a stream has it. */
type CallPart = NonNullable<Delta['tool_calls']>[number];

interface Call {
  id: string;
  name: string;
  arguments: TextAccumulator;
}

/** The tool calls of an answer that comes in parts. */
export interface StreamedCalls {
  /** False where they are too many, or too long. */
  add(part: CallPart): boolean;
  /** The calls, as a chat completion's message has them. */
  calls(): object[];
  release(): void;
}

const { callIdChars, functionNameChars, argumentsChars } = LIMITS.model;

/**
 * Puts tool calls together: parts of one call have one index; where a provider sends none, a part
 * with another id begins a call.
 */
export function createStreamedCalls(inProgress: ResponseMemory): StreamedCalls {
  const calls = new Map<number, Call>();
  let latest = -1;

  function callOf({ index, id }: CallPart): Call | undefined {
    const begins = id && calls.get(latest)?.id !== id;
    latest = index ?? (begins || latest < 0 ? calls.size : latest);
    const known = calls.get(latest);
    if (known) return known;
    // One more than a turn may have: whoever counts them says so.
    if (calls.size > LIMITS.run.toolCalls) return undefined;
    // UTF-8 takes three bytes for a character at the most; a pair is four for two.
    const made = {
      id: '',
      name: '',
      arguments: createTextAccumulator(inProgress, 3 * argumentsChars),
    };
    calls.set(latest, made);
    return made;
  }

  return {
    add(part) {
      const call = callOf(part);
      if (!call) return false;
      call.id ||= part.id ?? '';
      call.name += part.function?.name ?? '';
      if (call.id.length > callIdChars || call.name.length > functionNameChars) return false;
      return call.arguments.add(part.function?.arguments ?? '') !== undefined;
    },
    calls: () =>
      [...calls].map(([, call]) => {
        call.arguments.rest();
        return {
          id: call.id,
          function: { name: call.name, arguments: call.arguments.text() },
        };
      }),
    release: () => calls.forEach((call) => call.arguments.release()),
  };
}
