import { hasMoreValues } from '../../../shared/lib/validation/jsonComplexity.ts';
import { LIMITS } from '../../../shared/limits.ts';
import type { ToolCallExtra } from '../../../shared/sessions/turns/chat.ts';
import { isJsonObject } from '../../../shared/sessions/turns/requestForm.ts';
import { type AnswerMemory, createBoundedBuffer } from './boundedBuffer.ts';
import { parseChunk, type Chunk, type Delta } from './chunk.ts';
import { reasoningOf, recordableFields } from './providerFields.ts';
import { createSseParser } from './sseParser.ts';
import {
  truncatedAnswerError,
  responseMemoryError,
  answerTooLongError,
  tooManyPartsError,
  unusableAnswerError,
  type ResponseReader,
  type AnswerOrError,
} from './responseReaders.ts';
import { beginningOf, MOST_CALLS, reportedError, toStorableText, usageIn } from './answer.ts';

/** A text that arrives in pieces. */
interface TextAccumulator {
  /**
   * Adds a piece. Returns the text that can be shown, as it will be recorded; undefined if it
   * exceeds a limit.
   */
  add(piece: string): string | undefined;
  /** Returns the text that was held back because its other half never arrived. */
  rest(): string;
  isFull(): boolean;
  text(): string;
  release(): void;
}

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff;

/**
 * Joins the pieces of a text. A piece may end within a surrogate pair: its first half is held back
 * until the second one arrives. The text is kept as bytes in one buffer, because a million strings
 * of one character would take thirty times as much memory.
 */
function createTextAccumulator(
  memory: AnswerMemory,
  maxBytes: number = LIMITS.model.answerBytes,
): TextAccumulator {
  const body = createBoundedBuffer(maxBytes, memory);
  let heldBack = '';
  return {
    add(piece) {
      const text = heldBack + piece;
      const endsWithinPair = isHighSurrogate(text.charCodeAt(text.length - 1));
      heldBack = endsWithinPair ? text.slice(-1) : '';
      const visibleText = toStorableText(endsWithinPair ? text.slice(0, -1) : text);
      return body.add(Buffer.from(visibleText)) ? visibleText : undefined;
    },
    rest() {
      const visibleText = toStorableText(heldBack);
      heldBack = '';
      return visibleText !== '' && body.add(Buffer.from(visibleText)) ? visibleText : '';
    },
    isFull: body.isFull,
    text: body.text,
    release: body.release,
  };
}

/** A part of a tool call in a chunk of a stream. */
type CallPart = NonNullable<Delta['tool_calls']>[number];

interface Call {
  id: string;
  name: string;
  arguments: TextAccumulator;
  /** The number of parts so far. */
  parts: number;
  /** Whether the arguments of the first part are an object, once determined. */
  isComplete: boolean | undefined;
  /** The provider's own fields, as lines of JSON objects. */
  extra: TextAccumulator;
}

/** The tool calls of a streamed answer. */
interface StreamedCalls {
  /** Returns false if there are too many calls, or one is too long. */
  add(part: CallPart): boolean;
  /** The calls in the format of a chat completion's message. */
  calls(): object[];
  release(): void;
}

const {
  answerBytes,
  callIdChars,
  functionNameChars,
  argumentsChars,
  callFieldsChars,
  reasoningChars,
} = LIMITS.model;

/** The own fields of all calls together. Some providers send one with the first part of each call. */
const FIELDS_CHARS = 4 * callFieldsChars;
/** The minimum that a line of fields counts: parsing a short one takes as long as these characters. */
const LINE_CHARS = 64;

/**
 * Joins the fields of a call's parts, each a line of JSON. Maps, because there may be thousands of
 * parts with a field each: copying an object for each part would take minutes.
 */
function joinFields(lines: string): ToolCallExtra {
  const joined = new Map<string, unknown>();
  const called = new Map<string, unknown>();
  for (const line of lines.split('\n').slice(0, -1)) {
    const { function: ofFunction = {}, ...fields } = JSON.parse(line) as ToolCallExtra;
    for (const [name, value] of Object.entries(fields)) joined.set(name, value);
    for (const [name, value] of Object.entries(ofFunction)) called.set(name, value);
  }
  return {
    ...Object.fromEntries(joined),
    ...(called.size > 0 && { function: Object.fromEntries(called) }),
  };
}

/**
 * Assembles tool calls. A part with a new id begins a call, whatever its index: some providers send
 * index 0, or none, with each of several complete calls. Other parts continue the call with their
 * id, or else the one with their index, or else the latest one. A part with a name
 * and the beginning of arguments, after a call that came complete in one part, begins a call, too.
 */
function createStreamedCalls(memory: AnswerMemory): StreamedCalls {
  const calls: Call[] = [];
  /** The first call with each id. */
  const byId = new Map<string, Call>();
  /** As many as there can be calls, because each part may have another index. */
  const byIndex = new Map<number, Call>();
  let latest: Call | undefined;
  /** Characters of all calls, which are put together in one step at the end. */
  let argumentsLength = 0;
  let fieldsLength = 0;
  let parsedLength = 0;

  /**
   * Parses the arguments once, however many parts have the id of the call, and of all calls together no more
   * than one may have: one chunk may have parts of all of them, and nested arrays take long.
   */
  function isComplete(call: Call): boolean {
    if (call.isComplete !== undefined) return call.isComplete;
    const text = call.arguments.text();
    parsedLength += text.length;
    return (call.isComplete = parsedLength <= argumentsChars && isJsonObject(text));
  }

  function existingCall({ index, id, function: called }: CallPart): Call | undefined {
    const atIndex = typeof index === 'number' ? byIndex.get(index) : latest;
    const matching = id ? (byId.get(id) ?? (atIndex?.id === '' ? atIndex : undefined)) : atIndex;
    const mayBegin = called?.name && called.arguments?.startsWith('{');
    return mayBegin &&
      matching &&
      matching.parts === 1 &&
      matching.name !== '' &&
      isComplete(matching)
      ? undefined
      : matching;
  }

  /** Fields over the limits are dropped. */
  function addFields(call: Call, part: CallPart): void {
    const extra = fieldsLength < FIELDS_CHARS ? recordableFields(part) : undefined;
    if (extra === undefined) return;
    const line = `${extra}\n`;
    fieldsLength += Math.max(line.length, LINE_CHARS);
    if (fieldsLength <= FIELDS_CHARS) call.extra.add(line);
  }

  function callOf(part: CallPart): Call | undefined {
    latest = existingCall(part);
    if (!latest) {
      if (calls.length === MOST_CALLS) return undefined;
      // UTF-8 takes at most three bytes per UTF-16 unit, and four per surrogate pair.
      latest = {
        id: '',
        name: '',
        arguments: createTextAccumulator(memory, 3 * argumentsChars),
        parts: 0,
        isComplete: undefined,
        extra: createTextAccumulator(memory, 3 * callFieldsChars),
      };
      calls.push(latest);
    }
    const { index } = part;
    if (typeof index === 'number' && (byIndex.size < MOST_CALLS || byIndex.has(index)))
      byIndex.set(index, latest);
    return latest;
  }

  return {
    add(part) {
      const call = callOf(part);
      if (!call) return false;
      call.parts += 1;
      if (call.id === '' && part.id) {
        call.id = part.id;
        if (!byId.has(call.id)) byId.set(call.id, call);
      }
      // Some providers repeat the name in each part.
      const name = part.function?.name ?? '';
      if (name !== call.name) call.name += name;
      if (call.id.length > callIdChars || call.name.length > functionNameChars) return false;
      addFields(call, part);
      const piece = part.function?.arguments ?? '';
      argumentsLength += piece.length;
      return argumentsLength <= answerBytes && call.arguments.add(piece) !== undefined;
    },
    calls: () =>
      calls.map((call) => {
        call.arguments.rest();
        const { function: ofFunction, ...extra } = joinFields(call.extra.text());
        return {
          ...extra,
          id: call.id,
          function: { ...ofFunction, name: call.name, arguments: call.arguments.text() },
        };
      }),
    release() {
      for (const call of calls) {
        call.arguments.release();
        call.extra.release();
      }
    },
  };
}

/** The kept length of id, model and finish reason, which parseAnswer truncates to it anyway. */
const LABEL = LIMITS.model.labelChars;

/** Receives the text of an answer, and its reasoning, as they arrive. */
interface StreamListeners {
  onText: (text: string) => void;
  onReasoning?: ((text: string) => void) | undefined;
}

/**
 * Reads an answer that arrives as a stream of chunks, passes its text to `onText` as it arrives,
 * and builds the chat completion that the provider would have sent without streaming. The text of a
 * refusal is the refusal. The limits are those of an answer in one piece; the chunks around the
 * text may take more, because they are not kept. A stream that ends before its declared end is
 * truncated, and so is one without a finish reason in which a part has neither choices nor a usage.
 */
export function createStreamedAnswerReader(
  { onText, onReasoning }: StreamListeners,
  memory: AnswerMemory,
): ResponseReader {
  const lines = createSseParser(LIMITS.model.answerBytes, memory);
  const text = createTextAccumulator(memory);
  const reasoning = createTextAccumulator(memory, 3 * reasoningChars);
  const calls = createStreamedCalls(memory);
  let bytes = 0;
  let kind: 'content' | 'refusal' | undefined;
  let id = '';
  let model = '';
  let finish: string | undefined;
  /** True after a part with neither: some servers report errors so, before `[DONE]`. */
  let isInterrupted = false;
  let usage: unknown;
  let result: AnswerOrError | undefined;

  /** Text of the chunks that were read together. */
  let pieces = '';

  const show = (visibleText: string): void => {
    if (visibleText !== '') onText(visibleText);
  };

  function addText(delta: Delta): void {
    kind ??= delta.content ? 'content' : delta.refusal ? 'refusal' : undefined;
    pieces += (kind && delta[kind]) ?? '';
  }

  /** Shows the text of the chunks that were read. */
  function showText(): Error | undefined {
    if (pieces === '') return undefined;
    const visibleText = text.add(pieces);
    pieces = '';
    if (visibleText === undefined)
      return text.isFull() ? answerTooLongError() : responseMemoryError();
    show(visibleText);
    return undefined;
  }

  /** Keeps and shows reasoning up to its limit. */
  function addReasoning(piece: string): Error | undefined {
    if (piece === '' || reasoning.isFull()) return undefined;
    const visibleText = reasoning.add(piece);
    if (visibleText === undefined) return reasoning.isFull() ? undefined : responseMemoryError();
    if (visibleText !== '') onReasoning?.(visibleText);
    return undefined;
  }

  function addChunk(chunk: Chunk): Error | undefined {
    if (chunk.error) return reportedError('broke off its answer', chunk.error);
    isInterrupted ||= !chunk.choices && !chunk.usage;
    id ||= beginningOf(chunk.id ?? '', LABEL);
    model ||= beginningOf(chunk.model ?? '', LABEL);
    if (chunk.usage) usage = usageIn(chunk) ?? usage;
    const choice = chunk.choices?.find(({ index }) => (index ?? 0) === 0);
    if (typeof choice?.finish_reason === 'string')
      finish = beginningOf(choice.finish_reason, LABEL);
    for (const part of choice?.delta?.tool_calls ?? [])
      if (!calls.add(part)) return tooManyPartsError();
    if (!choice?.delta) return undefined;
    addText(choice.delta);
    return addReasoning(reasoningOf(choice.delta));
  }

  function buildCompletion(): string {
    show(text.rest());
    const message = {
      content: text.text(),
      reasoning_content: reasoning.text(),
      tool_calls: calls.calls(),
    };
    const choices = [{ finish_reason: finish, message }];
    return JSON.stringify({ id, model, choices, usage });
  }

  function addData(data: string): AnswerOrError | undefined {
    if (data === '[DONE]')
      return (
        showText() ??
        (isInterrupted && finish === undefined ? truncatedAnswerError() : buildCompletion())
      );
    if (hasMoreValues(data, LIMITS.model.eventValues)) return tooManyPartsError();
    const chunk = parseChunk(data);
    return chunk
      ? addChunk(chunk)
      : unusableAnswerError('has a part that is no part of a chat completion');
  }

  return {
    mostBytes: LIMITS.model.streamBytes,
    add(chunk) {
      bytes += chunk.length;
      if (bytes > LIMITS.model.streamBytes) return answerTooLongError();
      const status = lines.add(chunk, (data) => {
        result = addData(data);
        return result === undefined ? 'on' : 'stop';
      });
      if (status === 'ok') return result ?? showText();
      return status === 'full' ? answerTooLongError() : responseMemoryError();
    },
    end: () => result ?? (finish === undefined ? truncatedAnswerError() : buildCompletion()),
    release() {
      lines.release();
      text.release();
      reasoning.release();
      calls.release();
    },
  };
}
