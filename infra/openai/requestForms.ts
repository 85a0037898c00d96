import { APIError } from 'openai/core/error';
import { SLICE_BYTES } from '../../shared/lib/concurrency/yieldToEventLoop.ts';
import type { ChatRequest, ToolCallExtra } from '../../shared/sessions/turns/chat.ts';
import {
  applyRequestForm,
  type OmittedPart,
  type RequestForm,
} from '../../shared/sessions/turns/requestForm.ts';
import type { ChatAnswer } from '../../shared/ports/chatModel.ts';

/** The configured capabilities of a provider. Absent settings are learned from its answers. */
export interface ProviderQuirks {
  max_tokens_field?: 'max_completion_tokens' | 'max_tokens';
  /** False for a server that does not accept the field. */
  stream_options?: boolean;
  /** False for a server that does not accept the field. */
  response_format?: boolean;
  /** `user`: the system message becomes the beginning of the first user message. */
  system_role?: 'system' | 'developer' | 'user';
}

/** The form of requests to a model. */
interface ModelForm extends RequestForm {
  /** False if the server does not accept the field, which is in no recorded request. */
  stream_options?: boolean;
}

/** A field whose form is learned. */
type Field = keyof ProviderQuirks | Exclude<OmittedPart, 'response_format'>;

const UNSUPPORTED =
  /support|unrecogni[sz]ed|unknown|unexpected|unavailable|not (?:permitted|allowed|valid|implemented)|invalid|forbidden|extra|instead/i;
/** A limit that is too high is not a field that the server does not know. */
const TOO_HIGH = /too (?:large|big|high|long)|at most|less than|greater than|exceed|above_max/i;
/** The schema or the prompt of the caller is wrong, not the field. */
const BAD_FORMAT =
  /invalid[ _](?:json[ _])?schema|json_schema\.(?:name|schema|strict)|must contain the word/i;
/** Types of errors that say nothing about the field. */
const ERROR_TYPES = /invalid_request_error|invalid_value/gi;
/** Two patterns, because one for both words would take the square of the text's length. */
const SYSTEM_WORDS = [/\bsystem\b/i, /\brole\b/i];
const FIRST_ROLE = /messages?[[.]0\]?\.role/i;
const isAboutSystemRole = (text: string): boolean =>
  FIRST_ROLE.test(text) || SYSTEM_WORDS.every((word) => word.test(text));

/** Providers have a few own fields. Each name is searched for in the whole error. */
const MOST_CALL_FIELDS = 16;
const CALL_FIELD_CHARS = 128;
/** Names that errors about other fields contain. */
const STANDARD_FIELDS = new Set(['id', 'type', 'function', 'name', 'arguments']);

/** The provider's own fields of the tool calls of a request, each as JSON. */
const callFieldsOf = ({ messages }: ChatRequest): string[] =>
  messages.flatMap((message) =>
    message.role === 'assistant'
      ? (message.tool_calls?.flatMap(({ extra }) => extra ?? []) ?? [])
      : [],
  );

/** The first names of these fields. Those after a slice of text are not parsed: calls have similar fields. */
function callFieldNames(request: ChatRequest): ReadonlySet<string> {
  const fieldNames = new Set<string>();
  let chars = 0;
  for (const extra of callFieldsOf(request)) {
    if (chars > SLICE_BYTES) break;
    chars += extra.length;
    const { function: ofFunction = {}, ...fields } = JSON.parse(extra) as ToolCallExtra;
    for (const name of [...Object.keys(fields), ...Object.keys(ofFunction)]) {
      if (name.length <= CALL_FIELD_CHARS && !STANDARD_FIELDS.has(name)) fieldNames.add(name);
      if (fieldNames.size === MOST_CALL_FIELDS) return fieldNames;
    }
  }
  return fieldNames;
}

/** Whether an error response names a field of the request as one that the server does not accept. */
const NAMED: Record<Field, (text: string, request: ChatRequest) => boolean> = {
  max_tokens_field: (text, { max_tokens, max_completion_tokens }) =>
    !TOO_HIGH.test(text) &&
    ((max_completion_tokens !== undefined && text.includes('max_completion_tokens')) ||
      (max_tokens !== undefined && text.includes('max_tokens'))),
  stream_options: (text) => text.includes('stream_options'),
  response_format: (text, { response_format }) =>
    response_format !== undefined &&
    text.includes('response_format') &&
    UNSUPPORTED.test(text) &&
    !BAD_FORMAT.test(text),
  system_role: (text, { messages }) =>
    messages[0]?.role === 'system' && isAboutSystemRole(text) && UNSUPPORTED.test(text),
  reasoning_content: (text, { messages }) =>
    text.includes('reasoning_content') &&
    messages.some((message) => 'reasoning_content' in message),
  tool_call_fields: (text, request) =>
    [...callFieldNames(request)].some((name) => text.includes(name)),
};
const FIELDS = Object.keys(NAMED) as Field[];

const without = (form: ModelForm, part: OmittedPart): ModelForm => ({
  ...form,
  without: [...(form.without ?? []), part],
});

/** The form with the alternative for a field. */
function withAlternative(form: ModelForm, field: Field): ModelForm {
  switch (field) {
    case 'max_tokens_field': {
      const { max_tokens_field, ...rest } = form;
      return max_tokens_field ? rest : { ...rest, max_tokens_field: 'max_tokens' };
    }
    case 'stream_options':
      return { ...form, stream_options: false };
    case 'system_role':
      return { ...form, system_role: 'user' };
    case 'response_format':
    case 'reasoning_content':
    case 'tool_call_fields':
      return without(form, field);
    default:
      return field satisfies never;
  }
}

function configuredForm(quirks: ProviderQuirks): ModelForm {
  const { max_tokens_field, stream_options, response_format, system_role } = quirks;
  return {
    ...(max_tokens_field === 'max_tokens' && { max_tokens_field }),
    ...(stream_options === false && { stream_options }),
    ...(response_format === false && { without: ['response_format' as const] }),
    ...(system_role && system_role !== 'system' && { system_role }),
  };
}

/** The text of an error response, which may be of any shape. */
const textOf = ({ message, error }: APIError): string =>
  `${message} ${JSON.stringify(error)}`.replaceAll(ERROR_TYPES, '');

/** The parts of a form that change this request. */
function effectiveForm(form: ModelForm, request: ChatRequest): RequestForm | undefined {
  const { max_tokens_field, system_role, without: omitted = [] } = form;
  const has: Record<OmittedPart, () => boolean> = {
    response_format: () => request.response_format !== undefined,
    reasoning_content: () => request.messages.some((message) => 'reasoning_content' in message),
    tool_call_fields: () => callFieldsOf(request).length > 0,
  };
  const parts = omitted.filter((part) => has[part]());
  const effective: RequestForm = {
    ...(max_tokens_field && request.max_completion_tokens !== undefined && { max_tokens_field }),
    ...(system_role && request.messages[0]?.role === 'system' && { system_role }),
    ...(parts.length > 0 && { without: parts }),
  };
  return Object.keys(effective).length > 0 ? effective : undefined;
}

/** Twice the average of English. Estimates how many tokens an answer without a usage has at least. */
const CHARS_OF_LONG_TOKENS = 8;

/** Sends a request. `streamOptions` is false for a server that does not accept that field. */
type Send = (request: ChatRequest, streamOptions: boolean) => Promise<ChatAnswer>;

/** Sends requests in the forms that their models accept. */
export interface RequestForms {
  /**
   * Sends the request. If the server answers with 400 or 422 and names a field, sends it once more
   * with the alternative to that field, which is used for all later requests if it succeeds. Each
   * field is changed at most once. An answer with more tokens than the limit changes the field of
   * the limit for later requests. Throws the errors of `send`.
   */
  send(
    modelId: string,
    quirks: ProviderQuirks,
    request: ChatRequest,
    send: Send,
  ): Promise<ChatAnswer>;
}

/** The fields that the error is about and whose form is not configured. */
function rejectedFields(error: unknown, quirks: ProviderQuirks, sent: ChatRequest): Field[] {
  const isRejection = error instanceof APIError && (error.status === 400 || error.status === 422);
  if (!isRejection) return [];
  const text = textOf(error);
  return FIELDS.filter((field) => !(field in quirks) && NAMED[field](text, sent));
}

/** Keeps one form for each configured model. */
export function createRequestForms(): RequestForms {
  const forms = new Map<string, ModelForm>();
  const exceeded = new Set<string>();

  /** The limit is learned once, because a server may count other tokens than it limits. */
  function learnFromUsage(
    modelId: string,
    form: ModelForm,
    { max_completion_tokens: limit = Infinity }: ChatRequest,
    { tokens, content }: ChatAnswer,
  ): void {
    const written = tokens?.completion ?? (content ?? '').length / CHARS_OF_LONG_TOKENS;
    if (written <= limit || exceeded.has(modelId)) return;
    exceeded.add(modelId);
    forms.set(modelId, { ...form, max_tokens_field: 'max_tokens' });
  }

  return {
    async send(modelId, quirks, request, send) {
      const currentForm = forms.get(modelId) ?? configuredForm(quirks);
      const changed = new Set<Field>();
      for (let form = currentForm; ;) {
        const effective = effectiveForm(form, request);
        const sent = effective ? applyRequestForm(effective, request) : request;
        try {
          const answer = await send(sent, form.stream_options !== false);
          if (form !== currentForm) forms.set(modelId, form);
          if (!quirks.max_tokens_field) learnFromUsage(modelId, form, sent, answer);
          return effective ? { ...answer, sent: { request: sent, form: effective } } : answer;
        } catch (error) {
          const fields = rejectedFields(error, quirks, sent).filter((field) => !changed.has(field));
          if (fields.length === 0) throw error;
          for (const field of fields) changed.add(field);
          form = fields.reduce<ModelForm>(withAlternative, form);
        }
      }
    },
  };
}
