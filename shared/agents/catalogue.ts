import { storeUnavailableError, TurnlogError } from '../lib/errors/turnlogError.ts';
import type { ChatModels } from '../ports/chatModel.ts';
import type { SchemaChecker } from '../ports/schemaChecker.ts';
import type { Toolbox } from '../ports/toolbox.ts';

/** The models and tools that agents may use. */
export interface AgentCatalogue {
  models: ChatModels;
  toolbox: Toolbox;
  /** Checks the schemas of answers, and the answers. */
  schemas: SchemaChecker;
  /** The UI component of agents that name none. */
  defaultComponent: string;
}

const unsupported = (
  field: 'model' | 'tool',
  value: string,
  supported: readonly string[],
): TurnlogError => {
  const message = `The ${field} ${JSON.stringify(value)} is not supported. Supported: ${supported.join(', ') || 'none'}.`;
  return new TurnlogError(`${field}_not_supported`, message, {
    details: { [field]: { message, path: `/${field}` } },
  });
};

/** Throws `store_unavailable` for a model that the provider may be about to list. */
export function requireModelList({ models }: Pick<AgentCatalogue, 'models'>, model: string): void {
  if (!models.find(model) && models.awaitsList?.())
    throw storeUnavailableError(
      'The models of the provider are not known yet. Try again in a moment.',
    );
}

/** Checks the model and the tool, unless undefined. */
export function requireSupported(
  catalogue: AgentCatalogue,
  model: string | undefined,
  tool: string | undefined,
): void {
  const { models, toolbox } = catalogue;
  const modelIds = (): string[] => models.list().map(({ id }) => id);
  const toolNames = (): string[] => toolbox.list().map(({ name }) => name);
  if (model !== undefined) requireModelList(catalogue, model);
  if (model !== undefined && !models.find(model)) throw unsupported('model', model, modelIds());
  const unknownTool = tool === undefined ? undefined : toolbox.findUnsupported(tool);
  if (unknownTool !== undefined) throw unsupported('tool', unknownTool, toolNames());
}
