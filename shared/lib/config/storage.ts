import { Type } from '../../domain/jsonSchema.ts';
import { MAX_COUNT } from '../../accounts/events.ts';

const quota = (fallback: number, description: string) =>
  Type.Integer({ default: fallback, minimum: 0, maximum: MAX_COUNT, description });

const freeSpace = (fallback: string, description: string) =>
  Type.String({
    default: fallback,
    pattern: '^(0|[1-9]\\d{0,14}(,[1-9]\\d?%)?|[1-9]\\d?%)$',
    'x-rule': 'must be a number of bytes, a share such as 5%, or both as in 536870912,10%',
    description,
  });

/** Options that bound what is stored. */
export const storageOptions = {
  ACCOUNT_EVENTS_PER_DAY: quota(
    10_000_000,
    'Events that an account may add per UTC day, then 429 `quota_exceeded`; 0, here and below: no quota',
  ),
  ACCOUNT_BYTES_PER_DAY: quota(4_294_967_296, 'Bytes of events (data and metadata) per UTC day'),
  ACCOUNT_EVENTS: quota(1_000_000_000, 'Events of an account in total'),
  ACCOUNT_BYTES: quota(1_099_511_627_776, 'Bytes of the events of an account in total'),
  ACCOUNT_AUDITS_PER_DAY: quota(500_000, 'Audit entries of an account per UTC day'),
  DISK_WARN_FREE: freeSpace(
    '2147483648,20%',
    'Free disk space below which `/health/ready` is `degraded` and the log warns: bytes, a share such as `5%`, or both (the smaller counts); 0: never',
  ),
  DISK_STOP_FREE: freeSpace('536870912,10%', 'The same for 503 `storage_full` to new work'),
};
