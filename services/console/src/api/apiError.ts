interface FailureBody {
  error?: string;
  code?: string;
  retry?: string;
  request_id?: string;
  details?: unknown;
}

/** A request that the service rejected, or that did not reach it (`status` 0). */
export class ApiError extends Error {
  readonly code: string;
  readonly status: number;
  /** `same_key`, `new_key` or `never`: what the API advises. */
  readonly retry: string;
  readonly requestId: string | undefined;
  readonly details: unknown;

  constructor(status: number, body: FailureBody, cause?: unknown) {
    super(body.error ?? `The service answered with status ${status}.`, { cause });
    this.code = body.code ?? 'unknown';
    this.status = status;
    this.retry = body.retry ?? 'never';
    this.requestId = body.request_id;
    this.details = body.details;
  }
}

/** The error of a response that is not a success; its body may be anything. */
export async function readApiError(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => '');
  try {
    return new ApiError(response.status, JSON.parse(text) as FailureBody);
  } catch {
    return new ApiError(response.status, {});
  }
}
