/** Explanations of providers' codes. Provider messages appear nowhere. */
export const FINISH_REASONS: ReadonlyMap<unknown, string> = new Map([
  ['context_length_exceeded', 'the prompt is longer than the model takes'],
  ['content_filter', 'its content filter stopped it'],
  ['content_policy_violation', 'its content filter stopped it'],
  ['model_not_found', 'it does not have the model'],
  ['unsupported_parameter', 'the model does not take a parameter that was sent'],
  ['insufficient_quota', 'the quota is used up'],
]);
