import { useId, type ComponentProps, type ReactElement, type ReactNode, cloneElement } from 'react';
import { cn } from './classNames.ts';

const CONTROL =
  'w-full rounded-md border border-input bg-background px-3 text-sm placeholder:text-muted-foreground disabled:opacity-60 aria-invalid:border-destructive';

export const Input = ({ className, ...props }: ComponentProps<'input'>) => (
  <input className={cn(CONTROL, 'h-9', className)} {...props} />
);

export const Textarea = ({ className, ...props }: ComponentProps<'textarea'>) => (
  <textarea className={cn(CONTROL, 'min-h-24 py-2', className)} {...props} />
);

export const Select = ({ className, ...props }: ComponentProps<'select'>) => (
  <select className={cn(CONTROL, 'h-9', className)} {...props} />
);

interface FieldProps {
  label: string;
  hint?: ReactNode;
  error?: string | undefined;
  children: ReactElement<{ id?: string; 'aria-describedby'?: string; 'aria-invalid'?: boolean }>;
}

/** A control with its label, and a hint or an error that screen readers read with it. */
export function Field({ label, hint, error, children }: FieldProps) {
  const id = useId();
  const note = error ?? hint;
  return (
    <div className="grid gap-1.5">
      <label htmlFor={id} className="font-medium">
        {label}
      </label>
      {cloneElement(children, {
        id,
        'aria-invalid': error !== undefined,
        ...(note && { 'aria-describedby': `${id}-note` }),
      })}
      {note && (
        <p
          id={`${id}-note`}
          className={cn('text-xs', error ? 'text-destructive' : 'text-muted-foreground')}
        >
          {note}
        </p>
      )}
    </div>
  );
}

type Labelled = Omit<FieldProps, 'children'> & { value: string; onValue: (value: string) => void };

/** A line of text with its label. */
export const TextField = ({
  label,
  hint,
  error,
  onValue,
  ...props
}: Labelled & Omit<ComponentProps<'input'>, 'value'>) => (
  <Field label={label} hint={hint} error={error}>
    <Input onChange={({ target }) => onValue(target.value)} {...props} />
  </Field>
);

/** A text of several lines with its label. */
export const TextAreaField = ({
  label,
  hint,
  error,
  onValue,
  ...props
}: Labelled & Omit<ComponentProps<'textarea'>, 'value'>) => (
  <Field label={label} hint={hint} error={error}>
    <Textarea onChange={({ target }) => onValue(target.value)} {...props} />
  </Field>
);

/** A choice with its label: values and how each is shown, in the order of the list. */
export const SelectField = ({
  label,
  hint,
  error,
  onValue,
  options,
  ...props
}: Labelled &
  Omit<ComponentProps<'select'>, 'value'> & {
    options: readonly (readonly [value: string, shown: string])[];
  }) => (
  <Field label={label} hint={hint} error={error}>
    <Select onChange={({ target }) => onValue(target.value)} {...props}>
      {options.map(([value, shown]) => (
        <option key={value} value={value}>
          {shown}
        </option>
      ))}
    </Select>
  </Field>
);

/**
 * Binds fields to a draft whose members are texts: `<TextField label="Name" {...bind('name')} />`
 * shows the member and its problem, and reports changes.
 */
export const bindFields =
  <Draft extends object>(
    draft: Draft,
    onChange: (changes: Partial<Draft>) => void,
    problems: Readonly<Partial<Record<string, string>>> = {},
  ) =>
  (name: keyof Draft & string) => ({
    value: String(draft[name] ?? ''),
    error: problems[name],
    onValue: (value: string) => onChange({ [name]: value } as Partial<Draft>),
  });
