/** `serveConsole`: the web console of a gateway, a host, or a server that is tried out, on a listener of its own. */
import { hostname, userInfo } from 'node:os'
import { type Clock, realClock } from '../core/clock.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { Host } from '../host/host.ts'
import { version } from '../revisions/revision.ts'
import type { Store } from '../stores/store.ts'
import { type ApprovalQueue, SharedApprovals } from './approvals.ts'
import type { ConsoleKind, Role, Screen, Self } from './contract/session.ts'
import { Feed } from './feed.ts'
import { PageFiles } from './files.ts'
import { hostOf } from './guard.ts'
import { type HostObserver, ObservedHost } from './host/observer.ts'
import { hostSource } from './host/source.ts'
import { Jobs } from './jobs.ts'
import { announceConsole, linkOf, redeemStored } from './links.ts'
import { type ConsoleListener, listen } from './listener.ts'
import { allRoles, Logins, type OpenSession } from './login.ts'
import { type GatewayObserver, ObservedGateway } from './observer.ts'
import { Playground } from './playground/playground.ts'
import { routesOf } from './routes.ts'
import type { PlaygroundOptions, TapeOptions } from './shown.ts'
import { gatewaySource } from './sources/gateway.ts'
import { GatewayApprovals, reducedApproval, shortened } from './sources/gateway-approvals.ts'
import { playgroundSource } from './sources/playground.ts'
import type { ConsoleSource } from './sources/source.ts'
import { tapeSource } from './sources/tape.ts'

/** The port of the page, where it is free. */
export const consolePort = 7425

const playgroundScreens: readonly Screen[] = ['playground', 'traffic', 'conformance', 'approvals', 'logs']

/** The options of `serveConsole`. */
export interface ConsoleOptions {
  /** The gateway to show. Give exactly one of `gateway`, `host`, `playground` and `tape`. */
  readonly gateway?: Gateway
  /** The host to show. */
  readonly host?: Host
  /** A server to call, watch and judge: the console connects to it, and ends these connections with itself. */
  readonly playground?: PlaygroundOptions
  /** A tape whose frames are shown. */
  readonly tape?: TapeOptions
  /** What was observed of it since its start; without it there is neither traffic nor log, and of a host no news of turns. */
  readonly observer?: GatewayObserver | HostObserver
  /** The name that the page shows for a host. Default: `host`. */
  readonly name?: string
  /** Of a host: the conversation that the page opens first (default: `main`), and lines worth trying. */
  readonly chat?: ChatOptions
  /** A queue whose approvals are shown and answered together with those of the gateway, or that the host asks. */
  readonly approvals?: ApprovalQueue
  /**
   * The port of the page on 127.0.0.1; 0 takes any that is free.
   * @default 7425, or a free port where that is taken
   */
  readonly port?: number
  /** Who sees exact arguments and definitions: everybody, or only operators and approvers, which is the default. */
  readonly payloads?: 'viewer' | 'approver'
  /** Nobody approves a call of his own. A call whose subject is unknown can then only be refused. Default: false. */
  readonly fourEyes?: boolean
  /** The name that is written into the audit log for the user of the first link. Default: the user of this machine. */
  readonly by?: string
  /** The screens in the order of the rail, the first of which is opened. Default: all that there are. */
  readonly screens?: readonly Screen[]
  /** The store of the gateway: `vivarium gateway console FILE` leaves further links there. */
  readonly store?: Store
  /** The folder of the page. Default: that of this package. */
  readonly files?: string
  /** Called with errors that belong to no request. */
  readonly onError?: (error: unknown) => void
  /** The clock, for tests. */
  readonly clock?: Clock
}

/** What the chat begins with. */
export interface ChatOptions {
  /** The conversation that is opened first. Default: `main`. */
  readonly conversation?: string
  /** Lines worth trying. Default: none. */
  readonly examples?: readonly string[]
}

/** Who a link signs in. */
export interface LinkOptions {
  /** The name for the audit log. Default: the name of the option `by`. */
  readonly by?: string
  /** What the session may do. Default: everything. */
  readonly roles?: readonly Role[]
}

/** A console that is open. */
export interface RunningConsole {
  /** The address with a token that signs in once, within ten minutes. */
  readonly link: string
  /** The address without a token. */
  readonly url: string
  /** The port of the page. */
  readonly port: number
  /** Makes another link, with these roles or all. */
  newLink(options?: LinkOptions): string
  /** Ends all sessions and streams, and stops listening. */
  close(): Promise<void>
  /** The same as `close`. */
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Serves the web console of a gateway, of a host, or a playground for a server, on loopback.
 * @example
 * await using console = await serveConsole({ gateway })
 * process.stdout.write(`${console.link}\n`)
 * @example
 * await using console = await serveConsole({ playground: { target: 'http://127.0.0.1:7420/mcp' } })
 */
export async function serveConsole(options: ConsoleOptions): Promise<RunningConsole> {
  const { clock = realClock, store, onError: failed = () => {}, payloads = 'approver', fourEyes = false } = options
  const approvals = queueOf(options.approvals, clock)
  const { source, gatewayApprovals, start, close } = subjectOf(options, { approvals, clock, failed })
  const startedAt = clock.now()
  const mayRead = (roles: readonly Role[]): boolean =>
    payloads === 'viewer' || roles.includes('operator') || roles.includes('approver')
  const selfOf = (session: Pick<OpenSession, 'by' | 'roles' | 'since' | 'until'>): Self => {
    const { by, roles, since, until } = session
    return {
      ...{ kind: source.kind, name: source.name, version, screens: source.screens, start: feed.start },
      resources: [...new Set([...routes.keys()].map(key => key.split(' ')[1] ?? '')), '/events'],
      ...(source.target !== undefined && { target: source.target }),
      ...{ pid: process.pid, replica: hostname(), startedAt, now: clock.now(), payloads, fourEyes },
      durable: store !== undefined || options.host?.durable === true,
      session: { by, roles, since, until },
    }
  }
  const looking = new Looking({ source, gatewayApprovals, approvals, clock, failed })
  const feed: Feed = new Feed({
    clock,
    hello: (key, oldest) => ({ self: selfOf(logins.get(key)), ...(oldest !== undefined && { oldest }) }),
    alive: key => logins.alive(key),
    watched: watched => looking.change(watched ? feed : undefined),
  })
  const newLinkFix = newLinkFixes[source.kind]
  const logins: Logins = new Logins({
    ...{ clock, newLinkFix },
    redeem: store && (hash => redeemStored(store, feed.start, hash)),
    ended: key => feed.end(key),
  })
  const jobs = new Jobs(clock, job => feed.publish('job', job))
  const routes = routesOf({
    ...{ source, approvals, jobs, fourEyes },
    now: () => clock.now(),
    self: selfOf,
    signOut: ({ key }) => void logins.close(key) as undefined,
  })
  const parts = {
    clock,
    logins,
    newLinkFix,
    files: new PageFiles(options.files),
    feed,
    routes,
    mayRead,
    note: source.note,
    failed,
  }
  const listener: ConsoleListener = await listen(parts, options.port ?? consolePort, options.port === undefined)
  start()
  const url = `http://${hostOf(listener.port)}/`
  const unannounce =
    store && announceConsole(store, clock, { start: feed.start, url, replica: hostname(), pid: process.pid }, failed)
  const newLink: RunningConsole['newLink'] = ({ by = options.by ?? userName(), roles = allRoles } = {}) =>
    linkOf(url, logins.newLink({ by, roles }))
  const running: RunningConsole = {
    link: newLink(),
    url,
    port: listener.port,
    newLink,
    close: async () => {
      looking.change(undefined)
      feed.close()
      await Promise.all([close(), jobs.close(), listener.close(), unannounce?.()])
    },
    [Symbol.asyncDispose]: () => running.close(),
  }
  return running
}

const newLinkFixes: Readonly<Record<ConsoleKind, string>> = {
  gateway: 'Print a new one: vivarium gateway console FILE',
  host: 'Print a new one: /console in the terminal of the host',
  playground: 'Start the command again.',
  tape: 'Start the command again.',
}

interface Subject {
  readonly source: ConsoleSource
  readonly gatewayApprovals?: GatewayApprovals
  /** Called when the listener is open. */
  start(): void
  close(): Promise<void>
}

interface SubjectParts {
  readonly approvals: SharedApprovals
  readonly clock: Clock
  failed(error: unknown): void
}

/** What the console shows. */
function subjectOf(options: ConsoleOptions, { approvals, clock, failed }: SubjectParts): Subject {
  const { gateway, host, playground: wanted, tape, screens, observer: observed } = options
  if ([gateway, host, wanted, tape].filter(each => each !== undefined).length !== 1)
    throw new TypeError('serveConsole needs exactly one of the options gateway, host, playground and tape')
  if (tape !== undefined) return { source: tapeSource(tape, clock), start: () => {}, close: async () => {} }
  if (wanted !== undefined) {
    const playground = new Playground(wanted, approvals, clock)
    return {
      source: playgroundSource(playground, screens ?? playgroundScreens),
      start: () => void playground.start(options.by ?? userName()).catch(failed),
      close: () => playground.close(),
    }
  }
  if (host !== undefined) {
    const { name = 'host', chat: { conversation = 'main', examples = [] } = {} } = options
    const observer = observed instanceof ObservedHost ? observed : undefined
    const source = hostSource({ host, observer, name, facts: { conversation, examples }, clock, failed })
    return { source: { ...source, screens: screens ?? source.screens }, start: () => {}, close: async () => {} }
  }
  const observer = observed instanceof ObservedGateway ? observed : undefined
  const source = gatewaySource({ gateway: gateway as Gateway, observer, clock, failed })
  const gatewayApprovals = new GatewayApprovals(gateway as Gateway, clock)
  const detach = approvals.attach(gatewayApprovals)
  return {
    source: { ...source, screens: screens ?? source.screens },
    gatewayApprovals,
    start: () => {},
    close: async () => detach(),
  }
}

function queueOf(given: ApprovalQueue | undefined, clock: Clock): SharedApprovals {
  if (given === undefined) return new SharedApprovals(clock)
  if (given instanceof SharedApprovals) return given
  throw new TypeError('The option approvals is not a queue of createApprovalQueue()')
}

/** The user of this machine. */
function userName(): string {
  try {
    return userInfo().username
  } catch {
    return 'somebody'
  }
}

interface LookingParts {
  readonly source: ConsoleSource
  readonly gatewayApprovals: GatewayApprovals | undefined
  readonly approvals: SharedApprovals
  readonly clock: Clock
  failed(error: unknown): void
}

/** Follows the process while somebody looks, and rests otherwise. */
class Looking {
  readonly #parts: LookingParts
  #end: AbortController | undefined

  constructor(parts: LookingParts) {
    this.#parts = parts
  }

  /** Somebody reads the feed, or nobody does. */
  change(feed: Feed | undefined): void {
    this.#end?.abort()
    this.#end = undefined
    if (feed === undefined) return
    const end = new AbortController()
    this.#end = end
    const { source, gatewayApprovals, approvals, clock, failed } = this.#parts
    source.publish(feed, end.signal)
    const stop = approvals.subscribe({
      added: approval => feed.publish('approval', shortened(approval), reducedApproval(approval)),
      answered: answered => feed.publish('answered', answered),
    })
    end.signal.addEventListener('abort', stop)
    const told = new Set<string>()
    // The first look publishes, too: what came between a page's own list and this one would be news to nobody.
    void gatewayApprovals?.follow(clock, end.signal, () => this.#look(gatewayApprovals, told, feed).catch(failed)).catch(failed)
  }

  async #look(gatewayApprovals: GatewayApprovals, told: Set<string>, feed: Feed): Promise<void> {
    const { approvals, clock } = this.#parts
    const { now, over } = await gatewayApprovals.look()
    for (const approval of now) {
      if (told.has(approval.id)) continue
      told.add(approval.id)
      approvals.reopen(approval.id)
      feed.publish('approval', shortened(approval), reducedApproval(approval))
    }
    for (const approval of over) {
      const { id } = approval
      approvals.remember(approval, (await gatewayApprovals.answered(id)) ?? { id, at: clock.now() })
      // Not before: nobody who asks for it may find it nowhere.
      gatewayApprovals.forget(id)
      told.delete(id)
    }
  }
}
