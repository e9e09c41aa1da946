/**
 * What a host says in words because otherwise nothing would happen, and nobody would know why: events that nothing processes, and feature
 * sets that are not enabled. Each is said once.
 */
import type { Cancel, Clock } from '../core/clock.ts'
import { meantText, quoted, type Why, why } from '../core/suggestion.ts'
import { clip } from '../jsonrpc/limits.ts'
import { fits } from '../policy/rules/conditions.ts'

/** A program may open its inbox after its servers have connected: until then its events only wait. */
const graceMs = 5_000
/** Names that a notice lists. */
const mostNames = 10
const mostRemembered = 1_000

/** What the notices need from a host. */
interface NoticesPort {
  readonly clock: Clock
  /** Gives a notice to the program, or writes it to the log. */
  tell(notice: Why): void
  /** Whether this process, or another one on the store, runs the events of a server. */
  isRun(server: string): Promise<boolean>
}

/** The feature sets of a server, as the host decided about them. */
interface DecidedSets {
  /** All names that the server declares. */
  readonly declared: readonly string[]
  /** Those that are on. */
  readonly enabled: readonly string[]
  /** Those about which no rule says anything, and nobody will be asked. */
  readonly undecided: readonly string[]
  /** The patterns of `live.enable`. */
  readonly wanted: readonly string[]
}

/** Says once what would otherwise be silence. */
export class HostNotices {
  readonly #port: NoticesPort
  readonly #said = new Set<string>()
  #cancel: Cancel | undefined

  constructor(port: NoticesPort) {
    this.#port = port
  }

  /** An event was stored, and the inbox is not open in this process. */
  unopened(server: string): void {
    if (this.#said.has('inbox')) return
    this.#said.add('inbox')
    const look = async (): Promise<void> => {
      if (!(await this.#port.isRun(server))) this.#port.tell(notOpen(server))
    }
    // A store that cannot be read is reported by those who write to it.
    this.#cancel = this.#port.clock.setTimeout(() => void look().catch(() => {}), graceMs, true)
  }

  /** A server has connected, and these of its feature sets are on. */
  selected(server: string, { declared, enabled, undecided, wanted }: DecidedSets): void {
    for (const pattern of wanted) {
      if (!declared.some(name => fits([pattern], name))) this.#once(unknownSet(server, pattern, declared))
    }
    if (declared.length > 0 && enabled.length === 0 && undecided.length > 0) this.#once(nothingEnabled(server, undecided))
  }

  /** A server has connected that does not speak MCP Live. */
  notLive(server: string, wanted: readonly string[]): void {
    if (wanted.length > 0) this.#once(withoutLive(server))
  }

  /** Says nothing more. */
  close(): void {
    this.#cancel?.()
  }

  #once(notice: Why): void {
    if (this.#said.has(notice.message) || this.#said.size >= mostRemembered) return
    this.#said.add(notice.message)
    this.#port.tell(notice)
  }
}

function notOpen(server: string): Why {
  const message = `Events wait in the inbox (the first one of ${clip(server)}), but nothing processes them: the program has not called host.open()`
  return why('INBOX_NOT_OPEN', 'inbox', message, 'Call await host.open() after createHost. The stored events are processed then')
}

function unknownSet(server: string, pattern: string, declared: readonly string[]): Why {
  const names = declared.length === 0 ? 'It declares none' : `It declares ${listed(declared)}`
  const message = `live.enable of the server ${quoted(server)} contains ${quoted(pattern)}, but the server declares no such feature set. ${names}`
  const rule = `servers.${clip(server)}.enable`
  return why('SET_UNKNOWN', rule, message, meantText(pattern, declared) ?? 'Correct the name in live.enable')
}

function nothingEnabled(server: string, undecided: readonly string[]): Why {
  const message = `No feature set of the server ${quoted(server)} is enabled, so its events and requests are refused. It declares ${listed(undecided)}`
  const fix = `Add live: { enable: [${quoted(undecided[0] ?? '')}] } to its entry, pass onApproval to be asked, or say that you do not want it with live: { disable: ["*"] }`
  return why('SET_NOT_ENABLED', `servers.${clip(server)}.enable`, message, fix)
}

function withoutLive(server: string): Why {
  const message = `The entry of the server ${quoted(server)} enables feature sets, but the server does not speak MCP Live`
  return why(
    'LIVE_UNSUPPORTED',
    `servers.${clip(server)}.enable`,
    message,
    'Remove live from its entry, or use a server with feature sets',
  )
}

function listed(names: readonly string[]): string {
  const shown = names.slice(0, mostNames).map(name => clip(name))
  return `${shown.join(', ')}${names.length > mostNames ? `, and ${names.length - mostNames} more` : ''}`
}
