/** The addresses of the page. A deep link selects; it never acts. */
import { type AnyRouter, createRootRoute, createRoute, createRouter, redirect } from '@tanstack/react-router'
import type { Self } from '#contract'
import { Shell } from './frame/shell.tsx'
import { hostRoutes } from './host-routes.tsx'
import { ProblemCard } from './parts/problem.tsx'
import { Approvals } from './screens/approvals/approvals.tsx'
import { Audit } from './screens/audit/audit.tsx'
import { Clients } from './screens/clients/clients.tsx'
import { Conformance } from './screens/conformance/conformance.tsx'
import { Logs } from './screens/logs/logs.tsx'
import { Overview } from './screens/overview/overview.tsx'
import { Playground } from './screens/playground/playground.tsx'
import { Traffic } from './screens/traffic/traffic.tsx'
import { texts } from './search-texts.ts'

const root = createRootRoute({
  component: Shell,
  errorComponent: ({ error }) => (
    <div className="p-4">
      <ProblemCard error={error} />
    </div>
  ),
  notFoundComponent: () => <p className="p-4 text-muted">This address has no screen. Choose one at the side.</p>,
})

const overview = createRoute({
  getParentRoute: () => root,
  path: '/overview',
  validateSearch: texts('server'),
  component: OverviewScreen,
})
const approvals = createRoute({ getParentRoute: () => root, path: '/approvals', component: () => <Approvals /> })
const approval = createRoute({ getParentRoute: () => root, path: '/approvals/$id', component: ApprovalScreen })
const audit = createRoute({
  getParentRoute: () => root,
  path: '/audit',
  validateSearch: texts('q', 'entry'),
  component: AuditScreen,
})
const clients = createRoute({
  getParentRoute: () => root,
  path: '/clients',
  validateSearch: texts('client'),
  component: ClientScreen,
})
const logs = createRoute({ getParentRoute: () => root, path: '/logs', validateSearch: texts('q'), component: LogScreen })

const playground = createRoute({
  getParentRoute: () => root,
  path: '/playground',
  validateSearch: texts('server', 'kind', 'item', 'rev', 'call'),
  component: PlaygroundScreen,
})
const traffic = createRoute({
  getParentRoute: () => root,
  path: '/traffic',
  validateSearch: texts('q', 'sel', 't', 'tape'),
  component: TrafficScreen,
})
const conformance = createRoute({
  getParentRoute: () => root,
  path: '/conformance',
  validateSearch: texts('cell', 'q', 'id'),
  component: ConformanceScreen,
})

function PlaygroundScreen() {
  const navigate = playground.useNavigate()
  return <Playground place={playground.useSearch()} change={search => void navigate({ search })} />
}

function TrafficScreen() {
  const navigate = traffic.useNavigate()
  return <Traffic place={traffic.useSearch()} change={search => void navigate({ search, replace: true })} />
}

function ConformanceScreen() {
  const navigate = conformance.useNavigate()
  return <Conformance place={conformance.useSearch()} change={search => void navigate({ search, replace: true })} />
}

function OverviewScreen() {
  const { server } = overview.useSearch()
  const navigate = overview.useNavigate()
  return <Overview server={server} select={name => void navigate({ search: name === undefined ? {} : { server: name } })} />
}

function ApprovalScreen() {
  return <Approvals id={approval.useParams().id} />
}

function AuditScreen() {
  const { q = '', entry } = audit.useSearch()
  const navigate = audit.useNavigate()
  return (
    <Audit
      filter={q}
      entry={entry}
      change={next => void navigate({ search: { q: next.filter, entry: next.entry }, replace: true })}
    />
  )
}

function ClientScreen() {
  const { client } = clients.useSearch()
  const navigate = clients.useNavigate()
  return <Clients client={client} select={name => void navigate({ search: name === undefined ? {} : { client: name } })} />
}

function LogScreen() {
  const { q = '' } = logs.useSearch()
  const navigate = logs.useNavigate()
  return <Logs filter={q} change={next => void navigate({ search: { q: next }, replace: true })} />
}

/** The router of this kind of process; its first screen is the start page. */
export function createPageRouter(self: Self): AnyRouter {
  const start = createRoute({
    getParentRoute: () => root,
    path: '/',
    beforeLoad: () => {
      throw redirect({ to: `/${self.screens[0] ?? 'overview'}` })
    },
  })
  const operator = [overview, approvals, approval, audit, clients, logs]
  return createRouter({
    // Texts as they are: the router would write the text 1 as "1", and read the text true as something else.
    parseSearch: text => Object.fromEntries(new URLSearchParams(text)),
    stringifySearch: search => {
      const given = Object.entries(search).filter(([, value]) => value !== undefined && value !== '')
      return given.length === 0 ? '' : `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()}`
    },
    routeTree: root.addChildren([start, ...operator, playground, traffic, conformance, ...hostRoutes(root)]),
  })
}
