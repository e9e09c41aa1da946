/** A card with a title; it shows bars while its data is on the way, and its own failure, so that the others stay. */
import { type ReactNode, useEffect, useState } from 'react'
import { ProblemCard } from './problem.tsx'

export interface CardProps {
  readonly title: string
  /** Whose figures these are. */
  readonly scope?: string
  readonly query?: { readonly isPending: boolean; readonly error: unknown; refetch(): unknown }
  readonly className?: string
  readonly children: ReactNode
}

export function Card({ title, scope, query, className = '', children }: CardProps): ReactNode {
  return (
    <section aria-label={title} className={`card p-4 ${className}`}>
      <h2 className="mb-2 flex items-baseline justify-between gap-3 font-semibold">
        {title}
        {scope && <span className="text-[0.79rem] font-normal text-muted">{scope}</span>}
      </h2>
      {query?.error ? (
        <ProblemCard error={query.error} retry={() => void query.refetch()} />
      ) : query?.isPending ? (
        <Waiting />
      ) : (
        children
      )}
    </section>
  )
}

/** Nothing for a moment, then bars: most answers are faster than an eye. */
const momentMs = 150

export function Waiting({ rows = 3 }: { readonly rows?: number }): ReactNode {
  const [shown, show] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => show(true), momentMs)
    return () => clearTimeout(timer)
  }, [])
  if (!shown) return null
  return (
    <div role="status" aria-label="Loading" className="space-y-2">
      {Array.from({ length: rows }, (_, index) => (
        <div key={`bar ${index + 1}`} className="h-4 rounded bg-hover" style={{ width: `${90 - index * 18}%` }} />
      ))}
    </div>
  )
}
