/**
 * What of all tools a caller does not see: those that its client is not shown, that rules refuse it whatever it calls them with, and
 * whose scopes its token lacks. Found out once for each kind of caller, and anew when a tool comes or goes.
 */
import { permits } from '../../features/mcp/authorization/messages.ts'
import type { Caller } from '../../jsonrpc/connection.ts'
import { type Clients, subjectOf } from './clients.ts'
import type { TrustSettings } from './settings.ts'
import type { GatewayPolicy, ToolPolicy } from './tool-policy.ts'

interface ViewsParts {
  readonly clients: Clients
  readonly policy: () => GatewayPolicy
  /** By the name under which clients see it. */
  readonly tools: ReadonlyMap<string, ToolPolicy>
  readonly listed: () => TrustSettings['listed']
}

/** What all callers of one kind see. */
interface View {
  /** Tools that they do not, by the names that clients know. */
  readonly hidden: ReadonlySet<string>
}

/** Kinds of callers that are remembered: as many as rules can tell apart, as a rule few. */
const mostKinds = 256

export class Views {
  readonly #parts: ViewsParts
  readonly #views = new Map<string, View>()

  constructor(parts: ViewsParts) {
    this.#parts = parts
  }

  /** Whether two callers may see different things, or none sees all. */
  get differ(): boolean {
    const { clients, policy, listed } = this.#parts
    return clients.restricted || (listed() !== 'all' && policy().hides)
  }

  /** Tools have come or gone, or rules are others. */
  reset(): void {
    this.#views.clear()
  }

  of(caller: Caller): View {
    const kind = this.#kindOf(caller)
    const known = this.#views.get(kind)
    if (known !== undefined) return known
    const hidden = new Set<string>()
    for (const [exposed, policy] of this.#parts.tools) if (!this.sees(caller, policy)) hidden.add(exposed)
    if (this.#views.size >= mostKinds) this.#views.clear()
    const view: View = { hidden }
    this.#views.set(kind, view)
    return view
  }

  /** Whether one tool is listed to a caller. */
  sees(caller: Caller, policy: ToolPolicy): boolean {
    const { clients, listed } = this.#parts
    const client = clients.nameOf(caller)
    if (clients.get(client)?.sees('tool', policy.upstream, policy.tool) === false) return false
    if (listed() === 'all') return true
    return !policy.refusesAll(client, subjectOf(caller)) && permits(caller, policy.say('scopes', undefined))
  }

  /** Who is of one kind is answered the same by every rule that looks at who calls. */
  #kindOf(caller: Caller): string {
    const { clients, policy, listed } = this.#parts
    const client = clients.nameOf(caller)
    return listed() === 'all' ? client : `${client}\n${policy().tells(subjectOf(caller), scopes => permits(caller, scopes))}`
  }
}
