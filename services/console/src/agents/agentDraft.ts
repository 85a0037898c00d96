/** What the API takes as the configuration of an agent. */
export interface AgentBody {
  name: string;
  instruction: string;
  model: string;
  tool?: string;
  component?: string;
  compaction?: boolean;
  temperature?: number;
  max_output_tokens?: number;
  response_format?:
    | { type: 'text' | 'json_object' }
    | {
        type: 'json_schema';
        json_schema: { name: string; schema: Record<string, unknown>; strict?: boolean };
      };
}

/** The values of the form, as they are typed. */
export interface AgentDraft {
  name: string;
  instruction: string;
  model: string;
  tools: readonly string[];
  component: string;
  compaction: boolean;
  temperature: string;
  maxOutputTokens: string;
  /** Empty: the agent does not say. */
  format: '' | 'text' | 'json_object' | 'json_schema';
  schemaName: string;
  schema: string;
  isStrict: boolean;
}

export type DraftErrors = Partial<Record<keyof AgentDraft, string>>;

const EXAMPLE_SCHEMA = {
  type: 'object',
  properties: { answer: { type: 'string' } },
  required: ['answer'],
};

const toText = (value: unknown): string => JSON.stringify(value, undefined, 2);

export const EMPTY_DRAFT: AgentDraft = {
  name: '',
  instruction: '',
  model: '',
  tools: [],
  component: '',
  compaction: false,
  temperature: '',
  maxOutputTokens: '',
  format: '',
  schemaName: 'answer',
  schema: toText(EXAMPLE_SCHEMA),
  isStrict: false,
};

/** An agent that works with what every installation has: its first model and its calculator. */
export const exampleDraft = (models: readonly string[], tools: readonly string[]): AgentDraft => ({
  ...EMPTY_DRAFT,
  name: 'Sums',
  instruction: 'Answer briefly. Use the calculator for every sum, and show how you got the result.',
  model: models[0] ?? '',
  tools: tools.includes('calculator') ? ['calculator'] : [],
});

type StoredConfig = Pick<AgentBody, 'name' | 'instruction' | 'model'> & {
  [Name in Exclude<keyof AgentBody, 'name' | 'instruction' | 'model' | 'response_format'>]?:
    AgentBody[Name] | undefined;
} & {
  response_format?:
    | {
        type: string;
        json_schema?: {
          name: string;
          schema: Record<string, unknown>;
          strict?: boolean | undefined;
        };
      }
    | undefined;
};

/** The tools of an agent, whose `tool` lists them with commas. */
export const toolsOf = ({ tool = '' }: { tool?: string | undefined }): string[] =>
  tool
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');

/** The form of an agent as it is stored. */
export function draftOf({
  config,
  component,
}: {
  config: StoredConfig;
  component: string;
}): AgentDraft {
  const format = config.response_format;
  const schema = format?.json_schema;
  return {
    ...EMPTY_DRAFT,
    name: config.name,
    instruction: config.instruction,
    model: config.model,
    tools: toolsOf(config),
    component: component === 'Chat' ? '' : component,
    compaction: config.compaction ?? false,
    temperature: config.temperature?.toString() ?? '',
    maxOutputTokens: config.max_output_tokens?.toString() ?? '',
    ...(format && { format: format.type as AgentDraft['format'] }),
    ...(schema && {
      schemaName: schema.name,
      schema: toText(schema.schema),
      isStrict: schema.strict ?? false,
    }),
  };
}

function parseSchema(text: string): Record<string, unknown> | string {
  try {
    const schema = JSON.parse(text) as unknown;
    if (typeof schema === 'object' && schema !== null && !Array.isArray(schema))
      return schema as Record<string, unknown>;
    return 'A JSON Schema is a JSON object.';
  } catch (error) {
    return `This is not JSON: ${(error as Error).message}`;
  }
}

/**
 * The body of a request that stores a draft, or the errors that the API could not be asked about.
 * Everything else is left to the API, whose errors name their fields.
 */
export function bodyOf(draft: AgentDraft): { body: AgentBody } | { errors: DraftErrors } {
  const { format, temperature, maxOutputTokens, component } = draft;
  const schema = format === 'json_schema' ? parseSchema(draft.schema) : {};
  if (typeof schema === 'string') return { errors: { schema } };
  const body: AgentBody = {
    name: draft.name,
    instruction: draft.instruction,
    model: draft.model,
    ...(draft.tools.length > 0 && { tool: draft.tools.join(',') }),
    ...(component.trim() !== '' && { component: component.trim() }),
    ...(draft.compaction && { compaction: true }),
    ...(temperature !== '' && { temperature: Number(temperature) }),
    ...(maxOutputTokens !== '' && { max_output_tokens: Number(maxOutputTokens) }),
  };
  if (format === '') return { body };
  if (format !== 'json_schema') return { body: { ...body, response_format: { type: format } } };
  const json_schema = {
    name: draft.schemaName,
    schema,
    ...(draft.isStrict && { strict: true }),
  };
  return { body: { ...body, response_format: { type: format, json_schema } } };
}

/** The fields of the form by the path of the API's field; the first that matches holds. */
const FIELDS: readonly (readonly [path: string, field: keyof AgentDraft])[] = [
  ['response_format/json_schema/name', 'schemaName'],
  ['response_format/json_schema/strict', 'isStrict'],
  ['response_format/json_schema', 'schema'],
  ['response_format', 'format'],
  ['max_output_tokens', 'maxOutputTokens'],
  ['tool', 'tools'],
  ['name', 'name'],
  ['instruction', 'instruction'],
  ['model', 'model'],
  ['component', 'component'],
  ['compaction', 'compaction'],
  ['temperature', 'temperature'],
];

/** The `details` of an error of the API, by the field of the form that each is about. */
export function errorsOf(details: unknown): DraftErrors {
  const errors: DraftErrors = {};
  if (typeof details !== 'object' || details === null) return errors;
  for (const [path, detail] of Object.entries(details)) {
    const match = FIELDS.find(([start]) => path === start || path.startsWith(`${start}/`));
    const message = (detail as { message?: unknown } | null)?.message;
    if (match && typeof message === 'string') errors[match[1]] ??= message;
  }
  return errors;
}
