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

/** The values of the form, as they are typed. Empty ones are left to the defaults of the API. */
export const EMPTY_DRAFT = {
  name: '',
  instruction: '',
  model: '',
  tool: '',
  component: '',
  compaction: false,
  temperature: '',
  max_output_tokens: '',
  format: '',
  schema_name: 'answer',
  schema: '{\n  "type": "object"\n}',
  strict: false,
};
export type AgentDraft = typeof EMPTY_DRAFT;
export type DraftErrors = Partial<Record<keyof AgentDraft, string>>;

/** An agent that works with what every installation has. */
export const exampleDraft = (tools: readonly { name: string }[]): AgentDraft => ({
  ...EMPTY_DRAFT,
  name: 'Sums',
  instruction: 'Answer briefly. Use the calculator for every sum, and show how you got the result.',
  tool: tools.find(({ name }) => name === 'calculator')?.name ?? '',
});

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
  const { name, instruction, model, tool = '', compaction = false, response_format } = config;
  const schema = response_format?.json_schema;
  return {
    ...EMPTY_DRAFT,
    ...{ name, instruction, model, tool, component, compaction },
    temperature: config.temperature?.toString() ?? '',
    max_output_tokens: config.max_output_tokens?.toString() ?? '',
    format: response_format?.type ?? '',
    ...(schema && {
      schema_name: schema.name,
      schema: toText(schema.schema)!,
      strict: schema.strict ?? false,
    }),
  };
}

const numberOf = (text: string): number | undefined => (text === '' ? undefined : Number(text));

/**
 * The fields that a draft stands for. Throws a `SyntaxError` if the schema is not JSON; everything
 * else is checked by the API, whose errors name the fields.
 */
export function fieldsOf(draft: AgentDraft): AgentFields {
  const { name, instruction, model, tool, component, compaction, format, strict } = draft;
  const json_schema = format === 'json_schema' && {
    name: draft.schema_name,
    schema: JSON.parse(draft.schema) as object,
    ...(strict && { strict }),
  };
  return {
    ...{ name, instruction, model },
    tool: tool || undefined,
    component: component || undefined,
    compaction: compaction || undefined,
    temperature: numberOf(draft.temperature),
    max_output_tokens: numberOf(draft.max_output_tokens),
    response_format: format ? { type: format, ...(json_schema && { json_schema }) } : undefined,
  };
}

const SCHEMA_PATH = 'response_format/json_schema/';

/** The field of the form that a path of the API is about. */
function fieldOf(path: string): string {
  if (path === `${SCHEMA_PATH}name`) return 'schema_name';
  if (`${path}/`.startsWith(SCHEMA_PATH)) return 'schema';
  return path.startsWith('response_format') ? 'format' : path;
}

/** The `details` of an error of the API, by the field of the form that each is about. */
export function errorsOf(details: unknown): DraftErrors {
  const found = Object.entries((details || {}) as Record<string, { message?: string }>)
    .map(([path, { message }]) => [fieldOf(path), message] as const)
    .filter(([field, message]) => message !== undefined && Object.hasOwn(EMPTY_DRAFT, field));
  return Object.fromEntries(found) as DraftErrors;
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
