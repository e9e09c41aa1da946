/** What waits for a person, each with the way to it; or one line that nothing does. */
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { Approval, Budget, Fault, ServerRow } from '#contract'
import { useConsole } from '../../frame/context.ts'
import { Icon } from '../../frame/icon.tsx'
import { timeText } from '../../parts/time.tsx'

export interface AttentionProps {
  readonly approvals: readonly Approval[]
  readonly servers: readonly ServerRow[]
  readonly budgets: readonly Budget[]
  readonly faults: readonly Fault[]
  /** Whether everything was read, so that "nothing" is a fact. */
  readonly ready: boolean
  readonly select: (server: string) => void
}

/** The share of a budget from which it is named. */
const nearly = 0.8

const tile = 'card flex items-center gap-3 px-4 py-3 text-left hover:bg-hover'

export function Attention({ approvals, servers, budgets, faults, ready, select }: AttentionProps): ReactNode {
  const { self } = useConsole()
  const down = servers.filter(({ status }) => status === 'down' || status === 'refused')
  const held = servers.reduce((sum, server) => sum + server.held, 0)
  const spent = budgets.filter(({ used, most }) => used >= most * nearly)
  const calls = approvals.filter(({ kind }) => kind !== 'tool').length
  if (ready && down.length + held + spent.length + calls + faults.length === 0) {
    return (
      <p className="card flex items-center gap-3 border-good bg-good-soft px-4 py-3 text-good lg:col-span-2">
        <Icon path="M2.5 8.5l3.5 3.5 7.5-8" size={20} />
        All is well since {timeText(self.startedAt)}: nothing waits for you, every server is connected.
      </p>
    )
  }
  return (
    <ul aria-label="Needs attention" className="grid gap-3 sm:grid-cols-2 lg:col-span-2 xl:grid-cols-4">
      {calls > 0 && (
        <li>
          <Link to="/approvals" className={tile}>
            <Count value={calls} tone="text-accent" />
            <span>{calls === 1 ? 'approval is requested' : 'approvals are requested'}</span>
          </Link>
        </li>
      )}
      {held > 0 && (
        <li>
          <Link to="/approvals" className={tile}>
            <Count value={held} tone="text-warn" />
            <span>{held === 1 ? 'tool definition is held back' : 'tool definitions are held back'}</span>
          </Link>
        </li>
      )}
      {down.length > 0 && (
        <li>
          <button type="button" className={`${tile} w-full`} onClick={() => select(down[0]?.name ?? '')}>
            <Count value={down.length} tone="text-danger" />
            <span className="min-w-0 truncate">
              {down.length === 1 ? 'server is down' : 'servers are down'}: {down.map(({ name }) => name).join(', ')}
            </span>
          </button>
        </li>
      )}
      {spent.length > 0 && (
        <li className={tile}>
          <Count value={spent.length} tone="text-warn" />
          <span>{spent.length === 1 ? 'budget is nearly used up' : 'budgets are nearly used up'}</span>
        </li>
      )}
      {faults.length > 0 && (
        <li>
          <Link to="/logs" className={tile}>
            <Count value={faults.length} tone="text-danger" />
            <span>{faults.length === 1 ? 'mistake in the configuration' : 'mistakes in the configuration'}</span>
          </Link>
        </li>
      )}
    </ul>
  )
}

function Count({ value, tone }: { readonly value: number; readonly tone: string }): ReactNode {
  return <strong className={`text-2xl leading-none tabular-nums ${tone}`}>{value}</strong>
}
