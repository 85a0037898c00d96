import { useId } from 'react';
import type { ChangeEvent, ComponentProps, ReactElement, ReactNode } from 'react';
import { cn } from './classNames.ts';

const CONTROL =
  'w-full rounded-md border border-input bg-background px-3 text-sm placeholder:text-muted-foreground disabled:opacity-60 aria-invalid:border-destructive';

export const Input = ({ className, ...props }: ComponentProps<'input'>) => (
  <input className={cn(CONTROL, 'h-9', className)} {...props} />
);

export const Textarea = ({ className, ...props }: ComponentProps<'textarea'>) => (
  <textarea className={cn(CONTROL, 'min-h-24 py-2', className)} {...props} />
);

interface SelectProps extends ComponentProps<'select'> {
  /** Values and how each is shown, in the order of the list. */
  options?: readonly (readonly [value: string, shown: string])[];
}

export const Select = ({ className, options = [], children, ...props }: SelectProps) => (
  <select className={cn(CONTROL, 'h-9', className)} {...props}>
    {children}
    {options.map(([value, shown]) => (
      <option key={value} value={value}>
        {shown}
      </option>
    ))}
  </select>
);

type LabelledProps<Props> = Omit<Props, 'value' | 'onChange'> & {
  label: string;
  hint?: ReactNode;
  error?: string | undefined;
  value: string;
  onValue: (value: string) => void;
};

/** A control with its label, and a hint or an error that screen readers read with it. */
const labelled = <Props extends object>(Control: (props: Props) => ReactElement) =>
  function Labelled({ label, hint, error, onValue, ...props }: LabelledProps<Props>) {
    const id = useId();
    const note = error ?? hint;
    return (
      <div className="grid gap-1.5">
        <label htmlFor={id} className="font-medium">
          {label}
        </label>
        <Control
          {...(props as unknown as Props)}
          id={id}
          aria-invalid={error !== undefined}
          aria-describedby={note ? `${id}-note` : undefined}
          onChange={({ target }: ChangeEvent<HTMLInputElement>) => onValue(target.value)}
        />
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
  };

/** A line of text with its label. */
export const TextField = labelled(Input);
/** A text of several lines with its label. */
export const TextAreaField = labelled(Textarea);
/** A choice with its label. */
export const SelectField = labelled(Select);

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
