/** The buttons of the page. */
import type { ButtonHTMLAttributes, ReactNode } from 'react'

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly look?: 'plain' | 'primary' | 'danger' | 'quiet'
}

const looks = {
  plain: 'border border-line bg-raised hover:bg-hover',
  primary: 'bg-accent text-on-accent hover:bg-accent-strong',
  danger: 'bg-danger text-on-accent hover:bg-danger-strong',
  quiet: 'text-muted hover:bg-hover hover:text-ink',
} as const

export function Button({ look = 'plain', className = '', ...rest }: ButtonProps): ReactNode {
  return (
    <button
      type="button"
      className={`inline-flex min-h-8 items-center justify-center gap-1.5 rounded-md px-3 py-1 font-medium disabled:cursor-not-allowed disabled:opacity-50 ${looks[look]} ${className}`}
      {...rest}
    />
  )
}
