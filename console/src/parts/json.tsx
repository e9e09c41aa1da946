/** A value as indented JSON. */
import { type ReactNode, useMemo } from 'react'
import { LongText } from './long-text.tsx'

/** Indented JSON, as it is compared and shown. */
export function pretty(value: unknown): string {
  return JSON.stringify(value, undefined, 2) ?? 'undefined'
}

export function Json({ value, label }: { readonly value: unknown; readonly label: string }): ReactNode {
  const text = useMemo(() => pretty(value), [value])
  return <LongText text={text} label={label} />
}
