/** How much of each budget is used, and when its window ends. */
import type { ReactNode } from 'react'
import type { Budget } from '#contract'
import { durationText, timeText } from '../../parts/time.tsx'

export function Budgets({ budgets }: { readonly budgets: readonly Budget[] }): ReactNode {
  if (budgets.length === 0) return <p className="text-muted">No budget is set.</p>
  return (
    <ul className="space-y-2.5">
      {budgets.map(({ name, who, unit, used, most, per, resets }) => {
        const share = most === 0 ? 1 : Math.min(1, used / most)
        const tone = share >= 1 ? 'bg-danger' : share >= 0.8 ? 'bg-warn' : 'bg-bar'
        const words = `${round(used)} of ${round(most)} ${unit} per ${durationText(per)}`
        return (
          <li key={name}>
            <div className="flex justify-between gap-3">
              <span className="truncate font-medium">{who}</span>
              <span className="whitespace-nowrap tabular-nums">{words}</span>
            </div>
            <meter className="sr-only" aria-label={`Budget of ${who}`} min={0} max={most} value={Math.min(used, most)} />
            <div aria-hidden="true" className="mt-1 h-2 overflow-hidden rounded-full bg-hover">
              <div className={`h-full ${tone}`} style={{ width: `${share * 100}%` }} />
            </div>
            {resets !== undefined && (
              <div className="mt-0.5 text-[0.86rem] text-muted">The window ends at {timeText(resets)}.</div>
            )}
          </li>
        )
      })}
    </ul>
  )
}

function round(value: number): string {
  return value.toLocaleString('en', { maximumFractionDigits: 2 })
}
