/** The fields of an agent that the API takes; those that it makes optional may be undefined here. */
export interface AgentFields {
  name: string;
  instruction: string;
  model: string;
  tool?: string | undefined;
  component?: string | undefined;
  compaction?: boolean | undefined;
  temperature?: number | undefined;
  max_output_tokens?: number | undefined;
  response_format?:
    | { type: string; json_schema?: { name: string; schema: object; strict?: boolean | undefined } }
    | undefined;
}

/** The fields in the order in which their changes are shown. */
export const FIELD_LABELS = {
  name: 'Name',
  model: 'Model',
  tool: 'Tools',
  temperature: 'Temperature',
  max_output_tokens: 'Most output tokens',
  response_format: 'Response format',
  component: 'Component',
  compaction: 'Compaction',
  instruction: 'Instruction',
} as const satisfies Record<keyof AgentFields, string>;

/** The form as it is typed, by the paths of the API. Empty values are left to its defaults. */
export const EMPTY_DRAFT = {
  name: '',
  instruction: '',
  model: '',
  tool: '',
  component: '',
  compaction: '',
  temperature: '',
  max_output_tokens: '',
  response_format: '',
  'response_format/json_schema': '{\n  "type": "object"\n}',
  'response_format/json_schema/name': 'answer',
  'response_format/json_schema/strict': '',
};
export type AgentDraft = typeof EMPTY_DRAFT;
export type DraftErrors = Partial<Record<keyof AgentDraft, string>>;

/** A first agent; the calculator is built in. */
export const EXAMPLE_DRAFT: AgentDraft = {
  ...EMPTY_DRAFT,
  name: 'Sums',
  instruction: 'Answer briefly. Use the calculator for every sum, and show how you got the result.',
  tool: 'calculator',
};

/** The tools of an agent, whose `tool` lists them with commas. */
export const toolsOf = ({ tool = '' }: { tool?: string | undefined }): string[] =>
  tool.split(/[\s,]+/).filter((name) => name !== '');

const toText = (value: unknown): string | undefined =>
  typeof value === 'string' ? value : JSON.stringify(value, undefined, 2);

/** An agent as it is stored, or one of its revisions. */
export interface StoredFields {
  config: AgentFields;
  component: string;
}

/** The form of an agent as it is stored. */
export function draftOf({ config, component }: StoredFields): AgentDraft {
  const { response_format, ...plain } = { ...config, component };
  const pairs = Object.entries(plain).filter(([, value]) => value !== undefined && value !== false);
  const schema = response_format?.json_schema;
  return {
    ...EMPTY_DRAFT,
    ...Object.fromEntries(pairs.map(([name, value]) => [name, String(value)])),
    response_format: response_format?.type ?? '',
    ...(schema && {
      'response_format/json_schema': toText(schema.schema)!,
      'response_format/json_schema/name': schema.name,
      'response_format/json_schema/strict': schema.strict ? 'true' : '',
    }),
  };
}

const numberOf = (text: string): number | undefined => (text === '' ? undefined : Number(text));

/**
 * The fields that a draft stands for. Throws a `SyntaxError` if the schema is not JSON; everything
 * else is checked by the API, whose errors name the fields.
 */
export function fieldsOf(draft: AgentDraft): AgentFields {
  const { name, instruction, model, tool, component, compaction, response_format: type } = draft;
  const json_schema = type === 'json_schema' && {
    name: draft['response_format/json_schema/name'],
    schema: JSON.parse(draft['response_format/json_schema']) as object,
    ...(draft['response_format/json_schema/strict'] && { strict: true }),
  };
  return {
    name,
    instruction,
    model,
    tool: tool || undefined,
    component: component || undefined,
    compaction: compaction ? true : undefined,
    temperature: numberOf(draft.temperature),
    max_output_tokens: numberOf(draft.max_output_tokens),
    response_format: type ? { type, ...(json_schema && { json_schema }) } : undefined,
  };
}

const PATHS = Object.keys(EMPTY_DRAFT);

type ErrorDetails = Record<string, { message: string }>;

/** The `details` of an error of the API, by the field of the form that each is about. */
export function errorsOf(details: unknown): DraftErrors {
  const errors: Partial<Record<string, string>> = {};
  for (const [path, { message }] of Object.entries((details || {}) as ErrorDetails)) {
    const field = PATHS.findLast((each) => `${path}/`.startsWith(`${each}/`));
    if (field !== undefined) errors[field] = message;
  }
  return errors;
}

/**
 * The fields in which two configurations differ, with their values as text, undefined where they are
 * not set. The lines of texts are to be compared.
 */
export function diffFields(before: StoredFields, after: StoredFields) {
  const valueOf = (stored: StoredFields, name: string): string | undefined =>
    toText({ ...stored.config, component: stored.component }[name as keyof AgentFields]);
  return Object.entries(FIELD_LABELS)
    .map(([name, field]) => ({
      field,
      before: valueOf(before, name),
      after: valueOf(after, name),
      isText: name === 'instruction' || name === 'response_format',
    }))
    .filter((row) => row.before !== row.after);
}
