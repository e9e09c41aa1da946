/** The screens of this kind of process with what waits there, and the process itself. On narrow pages it is a bar at the bottom. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { inboxCounts } from '../api/host-lists.ts'
import { approvalList, faultList } from '../api/lists.ts'
import { useFeed } from '../feed/feed.ts'
import { useConsole, useResource } from './context.ts'
import { Icon } from './icon.tsx'
import { screenEntries } from './screens.ts'

const statusWords = { connecting: 'connecting', live: 'live', waiting: 'disconnected', ended: 'disconnected' } as const

export function Rail(): ReactNode {
  const { self, feed } = useConsole()
  const { status } = useFeed(feed)
  const approvals = useQuery({ ...approvalList, enabled: useResource('/approvals') }).data?.length ?? 0
  const faults = useQuery({ ...faultList, enabled: useResource('/faults') }).data?.length ?? 0
  const inbox = useQuery({ ...inboxCounts, enabled: self.screens.includes('inbox') }).data?.dead ?? 0
  const counts: Readonly<Record<string, number>> = { approvals, inbox, logs: faults }
  const entries = self.screens.flatMap(screen => screenEntries.filter(entry => entry.screen === screen))
  return (
    <nav
      aria-label="Screens"
      className="fixed inset-x-0 bottom-0 z-20 flex border-t border-line bg-raised md:static md:w-52 md:shrink-0 md:flex-col md:border-t-0 md:border-r"
    >
      <div className="hidden items-center gap-2.5 px-4 pt-4 pb-3 md:flex">
        <svg aria-hidden="true" width="26" height="26" viewBox="0 0 32 32" className="shrink-0">
          <rect width="32" height="32" rx="8" className="fill-accent" />
          <path
            d="M6 18h5l3-9 5 14 3-8 1.5 3H27"
            className="fill-none stroke-on-accent"
            strokeWidth="2.6"
            strokeLinecap="round"
            strokeLinejoin="round"
          />
        </svg>
        <div className="min-w-0">
          <div className="truncate font-semibold" title={self.name}>
            {self.name}
          </div>
          <div className="text-muted">{self.kind}</div>
        </div>
      </div>
      <ul className="flex flex-1 overflow-x-auto md:flex-col md:gap-0.5 md:overflow-visible md:px-2">
        {entries.map(({ screen, title, path, letter, icon }) => (
          <li key={screen} className="min-w-[4.6rem] flex-1 md:flex-none">
            <Link
              to={path}
              title={`${title} (g ${letter})`}
              className="relative flex flex-col items-center gap-0.5 px-1 py-2 text-muted hover:bg-hover hover:text-ink md:flex-row md:gap-2.5 md:rounded-md md:px-2.5 md:py-1.5"
              activeProps={{ className: '!text-accent-strong font-semibold md:bg-accent-soft', 'aria-current': 'page' }}
            >
              <Icon path={icon} />
              <span className="text-[0.79rem] md:text-base">{title}</span>
              {(counts[screen] ?? 0) > 0 && (
                <span className="rounded-full bg-accent px-1.5 text-[0.79rem] font-semibold text-on-accent max-md:absolute max-md:top-0.5 max-md:left-1/2 max-md:ml-2 md:ml-auto">
                  {counts[screen]}
                  <span className="sr-only"> need a person</span>
                </span>
              )}
            </Link>
          </li>
        ))}
      </ul>
      <dl className="hidden gap-x-2 border-t border-line px-4 py-3 text-[0.86rem] text-muted md:block">
        <dt className="sr-only">Connection</dt>
        <dd className="flex items-center gap-2">
          <span className={`inline-block h-2 w-2 rounded-full ${status === 'live' ? 'bg-good' : 'bg-warn'}`} />
          {statusWords[status]}
        </dd>
        <dt className="sr-only">Replica</dt>
        <dd className="truncate" title={`Process ${self.pid} on ${self.replica}`}>
          {self.replica} · {self.pid}
        </dd>
        <dt className="sr-only">Signed in as</dt>
        <dd className="truncate" title={self.session.roles.join(', ')}>
          {self.session.by} · {self.session.roles.join(', ')}
        </dd>
      </dl>
    </nav>
  )
}
