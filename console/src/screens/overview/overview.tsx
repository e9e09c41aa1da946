/** What needs a person, and how the servers are. Every card fails alone. */
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { approvalList, budgetList, faultList, serverList, useTraffic } from '../../api/lists.ts'
import { useConsole } from '../../frame/context.ts'
import { Card } from '../../parts/card.tsx'
import { timeText } from '../../parts/time.tsx'
import { figuresOf } from '../../pictures/buckets.ts'
import { Attention } from './attention.tsx'
import { Budgets } from './budgets.tsx'
import { LastHour } from './last-hour.tsx'
import { ServerDetails } from './server-details.tsx'
import { Servers } from './servers.tsx'

const hourMs = 3_600_000

export interface OverviewProps {
  readonly server: string | undefined
  readonly select: (server: string | undefined) => void
}

export function Overview({ server, select }: OverviewProps): ReactNode {
  const { self } = useConsole()
  const servers = useQuery(serverList)
  const approvals = useQuery(approvalList)
  const budgets = useQuery(budgetList)
  const faults = useQuery(faultList)
  const traffic = useTraffic({ by: 'server', step: 60_000, last: hourMs })
  const windows = traffic.data?.items ?? []
  const figures = new Map(
    (servers.data ?? []).map(({ name }) => [
      name,
      figuresOf(windows.flatMap(({ rows }) => rows.filter(row => row.server === name))),
    ]),
  )
  return (
    <div className="mx-auto grid max-w-[90rem] gap-4 p-4 lg:grid-cols-[minmax(0,2fr)_minmax(18rem,1fr)]">
      <Attention
        approvals={approvals.data ?? []}
        servers={servers.data ?? []}
        budgets={budgets.data ?? []}
        faults={faults.data ?? []}
        ready={servers.isSuccess && approvals.isSuccess}
        select={select}
      />
      <div className="flex min-w-0 flex-col gap-4">
        <Card title="Servers" scope="figures of the last hour, of this process" query={servers}>
          <Servers servers={servers.data ?? []} figures={figures} selected={server} select={select} />
        </Card>
        {server !== undefined && <ServerDetails name={server} close={() => select(undefined)} />}
      </div>
      <div className="flex min-w-0 flex-col gap-4">
        <Card title="Last hour" scope="this process" query={traffic}>
          <LastHour windows={windows} server={server} />
        </Card>
        <Card title="Budgets" scope="all replicas" query={budgets}>
          <Budgets budgets={budgets.data ?? []} />
        </Card>
        <Card title="Process">
          <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1">
            <dt className="text-muted">Version</dt>
            <dd>{self.version}</dd>
            <dt className="text-muted">Running since</dt>
            <dd>{timeText(self.startedAt)}</dd>
            <dt className="text-muted">Store</dt>
            <dd>{self.durable ? 'Answers and audit entries outlive the process' : 'Memory: everything ends with the process'}</dd>
            <dt className="text-muted">Replica</dt>
            <dd className="break-all">
              {self.replica}, process {self.pid}
            </dd>
          </dl>
        </Card>
      </div>
    </div>
  )
}
