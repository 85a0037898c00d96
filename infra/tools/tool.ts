import type { TObject, Static } from 'typebox';
import type { ToolCaller } from '../../shared/ports/toolGroup.ts';

/** A built-in tool: one function that the model may call, with arguments that fit its schema. */
export interface Tool<Parameters extends TObject = TObject> {
  name: string;
  description: string;
  parameters: Parameters;
  /**
   * Resolves with text for the model. The model gets the message of a ToolFailure, and a generic
   * message for other errors.
   */
  run(args: Static<Parameters>, calling: ToolCaller): Promise<string>;
}

/** A failed tool call. The message is a sentence for the model. */
export class ToolFailure extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ToolFailure';
  }
}
