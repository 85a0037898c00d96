import { Type } from '../../domain/jsonSchema.ts';

/** Options of the transparency log: its origin and its readers. */
export const transparencyOptions = {
  LOG_ORIGIN: Type.String({
    default: 'turnlog',
    maxLength: 200,
    pattern: '^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*$',
    'x-rule':
      'must be words of letters, digits, ".", "_" and "-", separated by slashes, such as turnlog.example.com/v1/log',
    description:
      'Name of the transparency log, preferably its address (`turnlog.example.com/v1/log`), before the log’s id. Another name begins another tree',
  }),
  LOG_SIGNING_KEY_FILE: Type.Optional(
    Type.String({
      description:
        'File of the Ed25519 keys (PEM, PKCS #8) that all sign checkpoints; default `log-signing-key.pem` in the data folder. With `DATABASE_URL`, projectors need the same (API processes should)',
    }),
  ),
  LOG_PUBLIC: Type.Boolean({
    default: false,
    description: 'Serve the transparency log without a key',
  }),
  LOG_KEPT_CHECKPOINTS: Type.Optional(
    Type.String({
      pattern: '^[^,\\s][^,]*(,[^,\\s][^,]*)*$',
      'x-rule':
        'must be files, folders or addresses, separated by commas without a space after them',
      description:
        'Files, folders or https addresses of [kept checkpoints](operations.md#a-log-that-was-rolled-back), separated by commas',
    }),
  ),
  LOG_WITNESSES_FILE: Type.Optional(
    Type.String({
      description: 'JSON file of the witnesses that cosign checkpoints',
    }),
  ),
};
