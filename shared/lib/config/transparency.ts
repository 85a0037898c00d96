import { Type } from 'typebox';

/** Options of the transparency log: its origin and its readers. */
export const transparencyOptions = {
  LOG_ORIGIN: Type.String({
    default: 'turnlog',
    maxLength: 200,
    pattern: '^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*$',
    description:
      'Name of the transparency log, best the address at which it is served, without a scheme (`turnlog.example.com/v1/log`); the log’s id follows it in each checkpoint. Under another name the tree is begun anew',
  }),
  LOG_SIGNING_KEY_FILE: Type.Optional(
    Type.String({
      description:
        'File with the Ed25519 keys (PEM, PKCS #8) that sign checkpoints, all of them each time; without it, `log-signing-key.pem` in the data folder, made at the first start. Processes with `DATABASE_URL` that project need it, the same for all',
    }),
  ),
  LOG_PUBLIC: Type.Boolean({
    default: false,
    description: 'Let anybody read the transparency log, without a key',
  }),
  LOG_KEPT_CHECKPOINTS: Type.Optional(
    Type.String({
      pattern: '^[^,\\s][^,]*(,[^,\\s][^,]*)*$',
      description:
        'Checkpoints of the log, kept where accounts that write the log have no access: files, folders or https addresses, separated by commas. A start and `audit verify` compare the log with them',
    }),
  ),
  LOG_WITNESSES_FILE: Type.Optional(
    Type.String({
      description:
        'JSON file with the witnesses that are to cosign checkpoints, and how many of them are wanted',
    }),
  ),
};
