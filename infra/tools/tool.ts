import type { TObject, Static } from 'typebox';
import type { Calling } from '../../shared/ports/toolGroup.ts';

/** A built-in tool: one function that the model may call, with arguments that fit its schema. */
export interface Tool<Parameters extends TObject = TObject> {
  name: string;
  description: string;
  parameters: Parameters;
  /**
   * Resolves with text for the model. A ToolFailure is told to the model; any other error is too,
   * without its words.
   */
  run(args: Static<Parameters>, calling: Calling): Promise<string>;
}

/** Why a tool can't do what was asked, as a sentence for the model. */
export class ToolFailure extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ToolFailure';
  }
}
