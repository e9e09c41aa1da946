/** The line that filters a list: what was typed counts after a moment without a key. */
import { type ReactNode, useEffect, useId, useState } from 'react'

const quietMs = 250

export interface FilterLineProps {
  readonly value: string
  readonly change: (value: string) => void
  readonly names: readonly string[]
  readonly unknown: readonly string[]
  readonly placeholder: string
}

export function FilterLine({ value, change, names, unknown, placeholder }: FilterLineProps): ReactNode {
  const help = useId()
  const [typed, setTyped] = useState(value)
  useEffect(() => setTyped(value), [value])
  useEffect(() => {
    if (typed === value) return
    const timer = setTimeout(() => change(typed), quietMs)
    return () => clearTimeout(timer)
  }, [typed, value, change])
  return (
    <div className="min-w-48 flex-1">
      <input
        type="search"
        data-filter=""
        aria-label="Filter"
        aria-describedby={help}
        autoComplete="off"
        spellCheck={false}
        className="w-full font-mono"
        placeholder={placeholder}
        value={typed}
        onChange={event => setTyped(event.target.value)}
        onKeyDown={event => event.key === 'Escape' && event.currentTarget.blur()}
      />
      <p id={help} className={unknown.length > 0 ? 'mt-1 text-danger' : 'sr-only'}>
        {unknown.length > 0 ? `There is no field ${unknown.join(', ')}. ` : ''}
        {`Fields: ${names.join(', ')}. Other words are searched in everything.`}
      </p>
    </div>
  )
}
