import { Check, Copy } from 'lucide-react';
import { useState, type ComponentProps } from 'react';
import { createLink } from '@tanstack/react-router';
import { cva, type VariantProps } from 'class-variance-authority';
import { cn } from './classNames.ts';

const buttonStyles = cva(
  'inline-flex items-center justify-center gap-2 whitespace-nowrap rounded-md text-sm font-medium motion-safe:transition-colors disabled:opacity-50 [&_svg]:size-4 [&_svg]:shrink-0',
  {
    variants: {
      variant: {
        primary: 'bg-primary text-primary-foreground hover:bg-primary/90',
        outline: 'border border-input/60 bg-background hover:bg-muted',
        ghost: 'hover:bg-muted',
        destructive: 'border border-destructive/60 text-destructive hover:bg-destructive/10',
        link: 'text-primary underline-offset-4 hover:underline',
      },
      size: { default: 'h-9 px-4', small: 'h-8 px-3', icon: 'size-9' },
    },
    defaultVariants: { variant: 'outline', size: 'default' },
  },
);

type Look = VariantProps<typeof buttonStyles>;

/** A button that submits nothing unless its `type` says so. */
export const Button = ({ className, variant, size, ...props }: ComponentProps<'button'> & Look) => (
  <button type="button" className={cn(buttonStyles({ variant, size }), className)} {...props} />
);

/** A link that looks like a button. */
export const LinkButton = createLink(
  ({ className, variant, size, ...props }: ComponentProps<'a'> & Look) => (
    <a className={cn(buttonStyles({ variant, size }), className)} {...props} />
  ),
);

/** Copies a text, and says so for two seconds. */
export function CopyButton({ text, label }: { text: string; label: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 2_000);
  };
  return (
    <Button variant="ghost" size="small" onClick={() => void copy()}>
      {isCopied ? <Check aria-hidden /> : <Copy aria-hidden />}
      <span aria-live="polite">{isCopied ? 'Copied' : label}</span>
    </Button>
  );
}
